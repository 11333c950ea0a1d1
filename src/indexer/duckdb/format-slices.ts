import { createTimeSlices, type TimeSlices } from '../../platform/process/time-slices.ts'

/**
 * Shares one thread between the queries whose results are formatted on it: they get one time slice after another, in rotation. The event loop runs
 * between two slices, so a message or a batch waits for one slice and not for one of each query. While blocks are ingested there is a pause after
 * each slice: without rows to format, the engine and the sender of the results stop too, and leave their processors to ingest.
 */
export type FormatSlices = {
  /** Slices granted so far. */
  readonly granted: number
  /** The slices of one query. */
  open(): TimeSlices
}

export type FormatSliceOptions = {
  readonly sliceMs?: number
  readonly isIngesting?: () => boolean
  readonly setTimer?: (run: () => void, ms: number) => void
}

/** Length of a slice; formatting an ordinary row takes far less. */
const SLICE_MS = 8
/** A pause has the length of so many slices. */
const PAUSE_SLICES = 6

export function createFormatSlices(
  nowMs: () => number = () => performance.now(),
  { sliceMs = SLICE_MS, isIngesting = () => false, setTimer = setTimeout }: FormatSliceOptions = {},
): FormatSlices {
  const waiting: (() => void)[] = []
  let granted = 0
  let grantedMs = Number.NEGATIVE_INFINITY

  /** During a pause it looks again after each slice, since ingest may be over before. */
  function schedule(): void {
    const pauseMs = isIngesting() ? grantedMs + (1 + PAUSE_SLICES) * sliceMs - nowMs() : 0
    if (pauseMs > 0) setTimer(schedule, Math.min(pauseMs, sliceMs))
    else setImmediate(grant)
  }

  function grant(): void {
    granted++
    grantedMs = nowMs()
    waiting.shift()?.()
    if (waiting.length > 0) schedule()
  }

  const nextTurn = () =>
    new Promise<void>((resolve) => {
      if (waiting.push(resolve) === 1) schedule()
    })

  return {
    get granted() {
      return granted
    },
    open: () => createTimeSlices(nowMs, { sliceMs, nextTurn }),
  }
}
