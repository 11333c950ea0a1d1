import { setImmediate as immediate } from 'node:timers/promises'

export type TimeSlices = {
  /** Whether the current slice is used up, so that the work should `await yield()` before it continues. */
  isSpent(): boolean
  /** Lets the event loop serve its other connections, then begins a new slice. */
  yield(): Promise<void>
}

/** The results of very many steps that are short by themselves, in slices. */
export async function mapInSlices<T, R>(
  items: readonly T[],
  step: (item: T) => R,
  slices: TimeSlices = createTimeSlices(),
): Promise<R[]> {
  const results: R[] = []
  for (const item of items) {
    results.push(step(item))
    if (slices.isSpent()) await slices.yield()
  }
  return results
}

/** Well below the 50 ms that one request may hold an event loop, since a step between two checks takes time too. */
const SLICE_MS = 10

/**
 * Splits the work of one request into slices, between which the event loop serves other connections. The work checks
 * `isSpent` at steps that are short by themselves. `nextTurn` resolves when the event loop has run and the next slice may begin.
 */
export function createTimeSlices(
  nowMs: () => number = () => performance.now(),
  {
    sliceMs = SLICE_MS,
    nextTurn = immediate,
  }: { readonly sliceMs?: number; readonly nextTurn?: () => Promise<void> } = {},
): TimeSlices {
  let startedMs = nowMs()
  return {
    isSpent: () => nowMs() - startedMs >= sliceMs,
    async yield() {
      await nextTurn()
      startedMs = nowMs()
    },
  }
}
