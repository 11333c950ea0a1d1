import type { Clock } from '../../../core/clock.ts'
import type { RefusalRecorder, RefusedRequest } from '../../../platform/telemetry/refusal-log.ts'

/** Refused requests that a thread sends to the control plane in a second. Of more, only their responses and the log have a record. */
const PER_SECOND_MAX = 1000

/** Sends refused requests to the control plane, whose queue has no bound while it is busy; so their number has one. */
export function forwardRefusals(
  send: (refused: RefusedRequest) => void,
  clock: Pick<Clock, 'monotonicMs'>,
): RefusalRecorder {
  let windowMs = clock.monotonicMs()
  let sent = 0
  return {
    record(refused) {
      const nowMs = clock.monotonicMs()
      if (nowMs - windowMs >= 1000) {
        windowMs = nowMs
        sent = 0
      }
      if (sent >= PER_SECOND_MAX) return
      sent += 1
      send(refused)
    },
  }
}
