/** Writes dashboards, alert rules with their tests, and the runbook. With `--check` nothing is written and a stale file is an error. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { rulesTestYaml, rulesYaml } from './ops/alert.ts'
import { ALERTS } from './ops/alerts.ts'
import { alertsPage } from './ops/alerts-page.ts'
import { EXECUTION_BOARD } from './ops/execution-board.ts'
import { grafanaJson } from './ops/grafana.ts'
import { OPERATOR_BOARD } from './ops/operator-board.ts'

const root = join(import.meta.dirname, '..')
const isCheck = process.argv.includes('--check')

const files: Record<string, string> = {
  'ops/grafana/operator.json': grafanaJson(OPERATOR_BOARD),
  'ops/grafana/execution.json': grafanaJson(EXECUTION_BOARD),
  'ops/prometheus/alerts.yml': rulesYaml(ALERTS),
  'ops/prometheus/alerts.test.yml': rulesTestYaml(ALERTS),
  'docs/alerts.md': alertsPage(ALERTS),
}

for (const [path, text] of Object.entries(files)) {
  if (read(path) === text) continue
  if (isCheck) {
    process.stderr.write(`${path} is stale\n`)
    process.exitCode = 1
  } else {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
    process.stdout.write(`${path} written\n`)
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(join(root, path), 'utf8')
  } catch {
    return undefined
  }
}
