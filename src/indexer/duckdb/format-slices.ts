import { createTimeSlices, type TimeSlices } from '../../platform/process/time-slices.ts'

/**
 * Shares one thread between the queries whose results are formatted on it: they get one time slice after another, in rotation. The event loop runs
 * between two slices, so a message or a batch waits for one slice and not for one of each query.
 */
export type FormatSlices = {
  /** Slices granted so far. */
  readonly granted: number
  /** The slices of one query. */
  open(): TimeSlices
}

/** Length of a slice; formatting an ordinary row takes far less. */
const SLICE_MS = 8

export function createFormatSlices(
  nowMs: () => number = () => performance.now(),
  { sliceMs = SLICE_MS }: { readonly sliceMs?: number } = {},
): FormatSlices {
  const waiting: (() => void)[] = []
  let granted = 0

  function grant(): void {
    granted++
    waiting.shift()?.()
    if (waiting.length > 0) setImmediate(grant)
  }

  const nextTurn = () =>
    new Promise<void>((resolve) => {
      if (waiting.push(resolve) === 1) setImmediate(grant)
    })

  return {
    get granted() {
      return granted
    },
    open: () => createTimeSlices(nowMs, { sliceMs, nextTurn }),
  }
}
