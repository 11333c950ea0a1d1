import { accessMetrics } from '../../src/access/metrics.ts'
import { billingMetrics } from '../../src/admin/billing/metrics.ts'
import { adminMetrics } from '../../src/admin/metrics.ts'
import { noticeMetrics } from '../../src/admin/notices/metrics.ts'
import { executionMetrics } from '../../src/execution/metrics.ts'
import { gatewayMetrics } from '../../src/gateway/metrics.ts'
import { indexerMetrics } from '../../src/indexer/metrics.ts'
import { diskMetrics } from '../../src/platform/files/disk-watch.ts'
import { createListenerMetrics } from '../../src/platform/net/listener-metrics.ts'
import {
  collectionsMetric,
  heldBytesMetric,
  liveBytesMetric,
} from '../../src/platform/telemetry/memory-guard-metrics.ts'
import type { MetricDescription } from '../../src/platform/telemetry/metrics-view.ts'
import { createProcessRegistry } from '../../src/platform/telemetry/process-metrics.ts'
import { threadSupervisionMetrics } from '../../src/platform/telemetry/thread-supervision-metrics.ts'
import { LISTENERS } from '../../src/processes/compose/config/listener.ts'
import { processHealthMetrics } from '../../src/processes/compose/process/process-health-metrics.ts'
import { senderMetrics } from '../../src/sender/metrics.ts'
import { decodedMetrics } from '../../src/shreds/decoded/metrics.ts'
import { upstreamStreamMetrics } from '../../src/shreds/decoded/node-streams/follow-nodes.ts'
import { shredsMetrics } from '../../src/shreds/metrics.ts'
import { upstreamsMetrics } from '../../src/upstreams/metrics.ts'

/** Every metric a process can have. `NODE` and `PATH` stand for the names of configured nodes and send paths. */
export function describeMetrics(): MetricDescription[] {
  using registry = createProcessRegistry({ build: { version: '0' } })
  threadSupervisionMetrics(registry, ['main', 'gateway-1', 'sender', 'execution', 'indexer', 'decoded-nodes'])
  processHealthMetrics(registry, { degraded: () => 0, lastBackupMs: () => undefined })
  liveBytesMetric(registry, () => 0)
  collectionsMetric(registry)
  heldBytesMetric(registry, () => 0)
  diskMetrics(registry, () => ({ free: 0, size: 0 }))
  createListenerMetrics(registry, LISTENERS)
  upstreamsMetrics(registry).add('NODE')
  accessMetrics(registry)
  billingMetrics(registry)
  gatewayMetrics(registry)
  noticeMetrics(registry)
  indexerMetrics(registry)
  shredsMetrics(registry)
  decodedMetrics(registry)
  upstreamStreamMetrics(registry)
  senderMetrics(registry, ['PATH'], {
    pending: () => 0,
    receipts: () => 0,
    knownSignatures: () => 0,
    connections: () => 0,
    tipEventsLost: () => 0,
  })
  executionMetrics(registry)
  adminMetrics(registry, { sessions: () => 0 })
  return registry.describe()
}
