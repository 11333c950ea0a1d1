import type { RefusalRecorder } from '../../platform/telemetry/refusal-log.ts'
import type { SenderMetrics } from '../metrics.ts'
import type { Refusal } from './refusal.ts'

/** Where refusals are reported. */
export type RefusalReporter = {
  /** Counts a refused transaction, or a reached limit, in the metrics, and records it under the id of its request. */
  report(refusal: Refusal, requestId: string): void
  /** Records the refusal of a call that is no transaction. It is not counted: the metric counts transactions. */
  record(refusal: Refusal, requestId: string): void
}

export function createRefusalReporter(
  metrics: Pick<SenderMetrics, 'received' | 'limited'>,
  log: RefusalRecorder | undefined,
): RefusalReporter {
  function record({ code: error, limit, message }: Refusal, requestId: string): void {
    log?.record({ requestId, interface: 'sender', error, limit, message })
  }
  return {
    report(refusal, requestId) {
      metrics.received(refusal.code)
      if (refusal.limit !== undefined) metrics.limited(refusal.limit)
      record(refusal, requestId)
    },
    record,
  }
}
