import { createTimeSlices, type TimeSlices } from '../../platform/process/time-slices.ts'

/**
 * Shares one thread between the queries whose results are formatted on it: they get one time slice after another, in rotation. The event loop runs
 * between two slices, so a message or a batch waits for one slice and not for one of each query. While the thread has other work, which is ingest,
 * that gets several times as much time as the slices.
 */
export type FormatSlices = {
  /** Slices granted so far. */
  readonly granted: number
  /** The slices of one query. */
  open(): TimeSlices
}

/** Length of a slice; formatting an ordinary row takes far less. */
const SLICE_MS = 8
/** Other work gets this many times the length of a slice before the next slice, unless there is none. */
const OTHERS_SHARE = 6
/** An iteration of the event loop that takes less has no other work. */
const IDLE_MS = 0.5

export function createFormatSlices(
  nowMs: () => number = () => performance.now(),
  { sliceMs = SLICE_MS }: { readonly sliceMs?: number } = {},
): FormatSlices {
  const waiting: (() => void)[] = []
  let granted = 0
  /** When the current iteration of the event loop began, and the time that slices have taken since. */
  let iterationMs = 0
  let slicesMs = 0
  /** Time of other work since the last slice. */
  let othersMs = 0

  function nextIteration(): void {
    iterationMs = nowMs()
    slicesMs = 0
    setImmediate(endIteration)
  }

  function endIteration(): void {
    const others = nowMs() - iterationMs - slicesMs
    othersMs += others
    if (others < IDLE_MS || othersMs >= OTHERS_SHARE * sliceMs) grant()
    if (waiting.length > 0) nextIteration()
  }

  function grant(): void {
    granted++
    othersMs = 0
    waiting.shift()?.()
  }

  const nextTurn = () =>
    new Promise<void>((resolve) => {
      if (waiting.push(resolve) === 1) nextIteration()
    })

  return {
    get granted() {
      return granted
    },
    open() {
      let startedMs = nowMs()
      return createTimeSlices(nowMs, {
        sliceMs,
        async nextTurn() {
          slicesMs += nowMs() - startedMs
          await nextTurn()
          startedMs = nowMs()
        },
      })
    },
  }
}
