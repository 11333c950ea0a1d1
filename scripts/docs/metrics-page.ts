import { accessMetrics } from '../../src/access/metrics.ts'
import { DOORS } from '../../src/apps/doors.ts'
import { bundleMetrics } from '../../src/bundle/metrics.ts'
import { executionMetrics } from '../../src/execution/metrics.ts'
import { createListenerMetrics } from '../../src/host/listener-metrics.ts'
import { createMetricsRegistry } from '../../src/host/metrics-registry.ts'
import { indexerMetrics } from '../../src/indexer/metrics.ts'
import { senderMetrics } from '../../src/sender/metrics.ts'
import { shredsMetrics } from '../../src/shreds/metrics.ts'
import { upstreamsMetrics } from '../../src/upstreams/metrics.ts'
import { GENERATED, table } from './markdown.ts'

export function metricsPage(): string {
  using registry = createMetricsRegistry({ processMetrics: true, build: { version: '0' } })
  createListenerMetrics(registry, DOORS)
  upstreamsMetrics(registry, ['NODE'], () => 0)
  accessMetrics(registry)
  bundleMetrics(registry)
  indexerMetrics(registry)
  shredsMetrics(registry)
  senderMetrics(registry, ['PATH'], { pending: () => 0, receipts: () => 0, connections: () => 0 })
  executionMetrics(registry)
  const rows = registry.describe().map(({ name, type, help, labels }) => [
    `\`${name}\``,
    type,
    Object.entries(labels ?? {})
      .map(([label, values]) => `${label}: ${values.join(', ')}`)
      .join('; '),
    help,
  ])
  return `${[
    '# Metrics',
    GENERATED,
    'What Sluice tells Prometheus about itself on the operator metrics listener (`metrics.listen`, default 127.0.0.1:9464). Labels come from closed lists; what is not on a list is counted as `other`.',
    table(['metric', 'type', 'labels', 'meaning'], rows),
  ].join('\n\n')}\n`
}
