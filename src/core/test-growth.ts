/**
 * How much longer work takes when its input doubles. Inputs grow up to `sizeMax` or until the work takes long enough to measure, so that quadratic and
 * cubic work is found early. The fastest of several runs counts, so that a busy machine does not distort the result.
 */
export function growthOf(
  work: (size: number) => () => unknown,
  sizeMax: number,
): { ratio: number; milliseconds: number; size: number } {
  let size = Math.max(8, Math.floor(sizeMax / 256))
  while (size * 4 <= sizeMax && timeOf(work(size)) < MEASURABLE_MS) size *= 4
  if (size * 2 <= sizeMax) size *= 2
  let large = leastTime(work(size))
  let small = large < SHORT_MS ? large : leastTime(work(size / 4))
  // A busy machine slows one side down in some attempts only; quadratic work takes four times as long in all of them.
  for (let attempt = 0; ratioOf(small, large) > GROWTH_MAX && attempt < ATTEMPTS; attempt++) {
    large = Math.min(large, leastTime(work(size)))
    small = Math.min(small, leastTime(work(size / 4)))
  }
  return { ratio: ratioOf(small, large), milliseconds: large, size }
}

/** For one doubling, measured over two: a garbage collection falls into one of them. */
function ratioOf(small: number, large: number): number {
  return large < SHORT_MS ? 1 : Math.sqrt(large / small)
}

/** The largest ratio for twice the input: above 2 for linear work and well below 4 for quadratic work. */
export const GROWTH_MAX = 2.5
/** Work that is shorter than this at the largest size is harmless: an event loop may be blocked for 50 ms. */
const SHORT_MS = 20
const MEASURABLE_MS = 60
const RUNS = 5
const ATTEMPTS = 5

function leastTime(work: () => unknown): number {
  let least = timeOf(work)
  for (let run = 1; run < RUNS && least >= SHORT_MS && least < MEASURABLE_MS * 4; run++)
    least = Math.min(least, timeOf(work))
  return least
}

/** Time on the processor: other processes take none of it. */
function timeOf(work: () => unknown): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}
