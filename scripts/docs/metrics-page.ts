import type { FormerNames } from '../../src/platform/telemetry/metric-memory.ts'
import { describeMetrics } from './all-metrics.ts'
import { GENERATED, table } from './markdown.ts'

export function metricsPage(): string {
  const rows = describeMetrics().map(({ name, type, merge, help, labels, former }) => [
    `\`${name}\``,
    merge === undefined ? type : `${type}, ${merge}`,
    Object.entries(labels ?? {})
      .map(([label, values]) => `${label}: ${values.join(', ')}`)
      .join('; '),
    former === undefined ? help : `${help} ${formerNames(former)}`,
  ])
  return `${[
    '# Metrics',
    GENERATED,
    'What Sluice reports to Prometheus on the operator metrics listener (`metrics.listen`, default 127.0.0.1:9464); series that begin with `sluice_execution_` are only on /metrics of the execution service (8443). Label values come from closed lists; other values are counted as `other`. A process adds up the counters and histograms of its threads, and merges their gauges by the rule after the type: the sum, the maximum or the minimum. The label `thread` is `main`, `gateway-1` and following, `sender`, `execution` or `indexer`.',
    table(['metric', 'type', 'labels', 'meaning'], rows),
  ].join('\n\n')}\n`
}

function formerNames({ name, labels = {}, values = {} }: FormerNames): string {
  const renamed = Object.entries({ ...labels, ...values }).map(([now, before]) => `\`${before}\` (${now})`)
  return `Former names, printed until 0.2: ${[...(name === undefined ? [] : [`\`${name}\``]), ...renamed].join(', ')}.`
}
