/**
 * How much more work costs when its input is twice as long. Inputs grow up to `sizeMax` or until the work is long enough to be measured, so that work
 * which grows as a square or a cube is found early. Of several runs the least counts, so that a busy machine does not decide.
 */
export function growthOf(
  work: (size: number) => () => unknown,
  sizeMax: number,
): { ratio: number; milliseconds: number; size: number } {
  let small = 0
  let large = 0
  let size = Math.max(8, Math.floor(sizeMax / 256))
  for (; ; size *= 2) {
    small = large
    large = leastTime(work(size))
    if (large >= MEASURABLE_MS || size * 2 > sizeMax) break
  }
  // Whatever a busy machine adds to one side only, it does not add every time; a square grows fourfold every time.
  for (let attempt = 0; ratioOf(small, large) > GROWTH_MAX && attempt < ATTEMPTS; attempt++) {
    large = Math.min(large, leastTime(work(size)))
    small = leastTime(work(size / 2))
  }
  return { ratio: ratioOf(small, large), milliseconds: large, size }
}

function ratioOf(small: number, large: number): number {
  return large < SHORT_MS ? 1 : large / Math.max(small, SHORT_MS / 4)
}

/** Twice the input may cost this much more: above the two of a line, and well below the four of a square. */
export const GROWTH_MAX = 2.5
/** At the greatest size this is too short to hurt or to be measured. */
const SHORT_MS = 4
const MEASURABLE_MS = 25
const RUNS = 5
const ATTEMPTS = 6

function leastTime(work: () => unknown): number {
  let least = Infinity
  for (let run = 0; run < RUNS; run++) {
    const started = performance.now()
    work()
    least = Math.min(least, performance.now() - started)
    if (least > MEASURABLE_MS * 8) break
  }
  return least
}
