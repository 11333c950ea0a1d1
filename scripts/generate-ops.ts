/** Writes dashboards, alert rules with their tests, and the runbook. With `--check` nothing is written and a stale file is an error. */
import { keepFresh } from './keep-fresh.ts'
import { rulesTestYaml, rulesYaml } from './ops/alert.ts'
import { ALERTS } from './ops/alerts.ts'
import { alertsPage } from './ops/alerts-page.ts'
import { EXECUTION_BOARD } from './ops/execution-board.ts'
import { grafanaJson } from './ops/grafana.ts'
import { OPERATOR_BOARD } from './ops/operator-board.ts'

keepFresh({
  'ops/grafana/operator.json': grafanaJson(OPERATOR_BOARD),
  'ops/grafana/execution.json': grafanaJson(EXECUTION_BOARD),
  'ops/prometheus/alerts.yml': rulesYaml(ALERTS),
  'ops/prometheus/alerts.test.yml': rulesTestYaml(ALERTS),
  'docs/alerts.md': alertsPage(ALERTS),
})
