import { GENERATED } from '../docs/markdown.ts'
import type { Alert } from './alert.ts'

/** The runbook page: one section per alert. */
export function alertsPage(alerts: readonly Alert[]): string {
  const sections = alerts.map(({ name, summary, expr, for: forTime, severity, does }) =>
    [
      `## ${name}`,
      summary.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, '`$1`'),
      `${severity === 'page' ? 'Severity page' : 'Severity ticket'}${forTime === '0s' ? '' : `, after ${forTime}`}: \`${expr}\``,
      does.map((step) => `- ${step}`).join('\n'),
    ].join('\n\n'),
  )
  return `${[
    '# Alerts',
    GENERATED,
    'The rules are in [ops/prometheus/alerts.yml](../ops/prometheus/alerts.yml), their tests beside them (`promtool test rules`); the dashboards to import are [operator.json](../ops/grafana/operator.json) and [execution.json](../ops/grafana/execution.json). The name of the scrape job must begin with `sluice`.',
    'Metrics do not cover the integrity of the store: run `sluice audit verify` and `sluice doctor` once a day; both exit with a code above 0 on a problem. A disk that fills shows first as [SluiceDiskFilling](#sluicediskfilling), then as [SluiceDiskFull](#sluicediskfull).',
    ...sections,
  ].join('\n\n')}\n`
}
