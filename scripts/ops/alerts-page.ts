import { GENERATED } from '../docs/markdown.ts'
import type { Alert } from './alert.ts'

/** The runbook: a section for each alert, with what to do first. */
export function alertsPage(alerts: readonly Alert[]): string {
  const sections = alerts.map(({ name, summary, expr, for: forTime, severity, does }) =>
    [
      `## ${name}`,
      summary.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, '*$1*'),
      `${severity === 'page' ? 'Wakes somebody' : 'Waits for the morning'}${forTime === '0s' ? '' : `, once it has been so for ${forTime}`}: \`${expr}\``,
      does.map((step) => `- ${step}`).join('\n'),
    ].join('\n\n'),
  )
  return `${[
    '# Alerts',
    GENERATED,
    'The rules are in [ops/prometheus/alerts.yml](../ops/prometheus/alerts.yml), their tests beside them (`promtool test rules`); the dashboards to import are [operator.json](../ops/grafana/operator.json) and [execution.json](../ops/grafana/execution.json). The name of the scrape job begins with `sluice`.',
    'What Prometheus cannot tell, because only reading everything shows it: run `sluice audit verify` and `sluice doctor` once a day; both end with a code above 0 when something is wrong. A full disk shows first as [SluiceUsageWaits](#sluiceusagewaits).',
    ...sections,
  ].join('\n\n')}\n`
}
