/** Checks of many open connections, sessions or accounts, repeated after each change. */
export type SlicedChecks<T> = Disposable & {
  /**
   * Checks these items: at once as far as a slice allows, the others in the next turns of the event loop, in their order. An item that waits already
   * keeps its place, so every item has its turn however often this is called. The check has to accept an item that is gone.
   */
  check(items: Iterable<T>): void
}

export type SliceTurns = {
  readonly nowMs: () => number
  /** Runs it when the event loop has served its connections. */
  readonly nextTurn: (run: () => void) => void
}

const SYSTEM_TURNS: SliceTurns = { nowMs: () => performance.now(), nextTurn: (run) => void setImmediate(run) }

/** Several listeners of a thread have their checks in the same turn, which must stay well below 50 ms. */
const SLICE_MS = 5
/** Items that wait for so long get larger slices: a revoked token is cut off within a second, also where the event loop is busy. */
const LATE_MS = 250
const LATE_SLICE_MS = 15

/** Runs `check` for each item in slices of time, between which the event loop serves its connections. */
export function createSlicedChecks<T>(
  check: (item: T) => void,
  { nowMs, nextTurn }: SliceTurns = SYSTEM_TURNS,
): SlicedChecks<T> {
  /** Since when each item waits, the oldest first. */
  const waiting = new Map<T, number>()
  let isScheduled = false

  function runSlice(): void {
    isScheduled = false
    const fromMs = nowMs()
    for (const [item, sinceMs] of waiting) {
      waiting.delete(item)
      check(item)
      const sliceMs = fromMs - sinceMs > LATE_MS ? LATE_SLICE_MS : SLICE_MS
      if (nowMs() - fromMs >= sliceMs) break
    }
    if (waiting.size === 0) return
    isScheduled = true
    nextTurn(runSlice)
  }

  return {
    check(items) {
      const sinceMs = nowMs()
      for (const item of items) if (!waiting.has(item)) waiting.set(item, sinceMs)
      if (!isScheduled) runSlice()
    },
    [Symbol.dispose]: () => waiting.clear(),
  }
}
