import type { Clock } from '../../core/clock.ts'

/** Shortest time between two lines of one kind. */
const LINE_MS = 60_000

/** A log line that each failing request would write: at most one a minute, with how many were left out since the last one. */
export type LimitedLog = (write: (fields: { readonly suppressed?: number }) => void) => void

/** For lines of one kind. */
export function createLimitedLog(clock: Pick<Clock, 'monotonicMs'>): LimitedLog {
  let lastMs = Number.NEGATIVE_INFINITY
  let suppressed = 0
  return (write) => {
    const nowMs = clock.monotonicMs()
    if (nowMs - lastMs < LINE_MS) {
      suppressed += 1
      return
    }
    const left = suppressed === 0 ? {} : { suppressed }
    lastMs = nowMs
    suppressed = 0
    write(left)
  }
}
