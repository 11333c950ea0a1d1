import { describeMetrics } from './all-metrics.ts'
import { GENERATED, table } from './markdown.ts'

export function metricsPage(): string {
  const rows = describeMetrics().map(({ name, type, merge, help, labels }) => [
    `\`${name}\``,
    merge === undefined ? type : `${type}, ${merge}`,
    Object.entries(labels ?? {})
      .map(([label, values]) => `${label}: ${values.join(', ')}`)
      .join('; '),
    help,
  ])
  return `${[
    '# Metrics',
    GENERATED,
    'What Sluice reports to Prometheus on the operator metrics listener (`metrics.listen`, default 127.0.0.1:9464); series that begin with `sluice_execution_` are only on /metrics of the execution service (8443). Label values come from closed lists; other values are counted as `other`. A process adds up the counters and histograms of its threads, and merges their gauges by the rule after the type: the sum, the maximum or the minimum. The label `thread` is `main`, `gateway-1` and following, `sender`, `execution` or `indexer`.',
    table(['metric', 'type', 'labels', 'meaning'], rows),
  ].join('\n\n')}\n`
}
