/**
 * How much more work costs when its input is twice as long. Inputs grow up to `sizeMax` or until the work is long enough to be measured, so that work
 * which grows as a square or a cube is found early. Of several runs the least counts, so that a busy machine does not decide.
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
  // Whatever a busy machine adds to one side only, it does not add every time; a square grows fourfold every time.
  for (let attempt = 0; ratioOf(small, large) > GROWTH_MAX && attempt < ATTEMPTS; attempt++) {
    large = Math.min(large, leastTime(work(size)))
    small = Math.min(small, leastTime(work(size / 4)))
  }
  return { ratio: ratioOf(small, large), milliseconds: large, size }
}

/** For one doubling, out of two: a collection of garbage falls into one of them. */
function ratioOf(small: number, large: number): number {
  return large < SHORT_MS ? 1 : Math.sqrt(large / small)
}

/** Twice the input may cost this much more: above the two of a line, and well below the four of a square. */
export const GROWTH_MAX = 2.5
/** At the greatest size this is too short to hurt: an event loop may be held for 50 ms. */
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

function timeOf(work: () => unknown): number {
  const started = performance.now()
  work()
  return performance.now() - started
}
