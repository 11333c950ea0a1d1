import type { MetricsRegistry } from '../../platform/telemetry/metrics-registry.ts'
import { NOTICE_KINDS } from './notice.ts'

export function noticeMetrics(registry: MetricsRegistry, waiting: () => number = () => 0) {
  registry.gauge('sluice_notices_waiting', 'Notices that a receiver has not accepted yet.', { read: waiting })
  return {
    made: registry.counter('sluice_notices_total', 'Notices by kind.', { labels: { kind: NOTICE_KINDS } }),
    attempts: registry.counter('sluice_notice_deliveries_total', 'Attempts to deliver a notice, by result.', {
      labels: { result: ['delivered', 'failed', 'given-up'] },
    }),
  }
}
