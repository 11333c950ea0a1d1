import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { describeMetrics } from '../scripts/docs/all-metrics.ts'
import { rulesTestYaml, rulesYaml } from '../scripts/ops/alert.ts'
import { ALERTS } from '../scripts/ops/alerts.ts'
import type { Board } from '../scripts/ops/board.ts'
import { EXECUTION_BOARD } from '../scripts/ops/execution-board.ts'
import { grafanaJson } from '../scripts/ops/grafana.ts'
import { OPERATOR_BOARD } from '../scripts/ops/operator-board.ts'
import { commandsNamedIn } from './support/cli/commands.ts'

/** The shipped dashboards and alerts, checked against the existing metrics and with promtool. */

const root = join(import.meta.dirname, '..')
const prometheus = join(root, 'ops/prometheus')
const BOARDS: readonly Board[] = [OPERATOR_BOARD, EXECUTION_BOARD]
const METRICS = new Map(describeMetrics().map((metric) => [metric.name, metric]))

/** Metrics that are in no panel and no alert, each with the reason. */
const UNUSED: Readonly<Record<string, string>> = {}

const panels = BOARDS.flatMap(({ rows }) => rows.flatMap((row) => row.panels))
const expressions = [
  ...panels.flatMap(({ queries }) => queries.map(({ expr }) => expr)),
  ...ALERTS.map(({ expr }) => expr),
]

/** Names of metrics in an expression, those of a histogram's parts by the histogram. */
function namesIn(text: string): string[] {
  return [...text.matchAll(/\bsluice_[a-z0-9_]+/g)].map(([name]) =>
    METRICS.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ''),
  )
}

test('every metric is in a panel or an alert, or has a reason why not', () => {
  assert.ok(METRICS.size > 100, `only ${METRICS.size} metrics were found`)
  const used = new Set(expressions.flatMap(namesIn))
  const forgotten = [...METRICS.keys()].filter((name) => !used.has(name) && !Object.hasOwn(UNUSED, name))
  assert.deepEqual(forgotten, [], 'add a panel in scripts/ops')
  for (const name of Object.keys(UNUSED)) assert.ok(METRICS.has(name) && !used.has(name), `${name} needs no reason`)
})

test('every metric, label and value in a query exists', () => {
  const series = ALERTS.flatMap(({ fires, quiet }) => [...Object.keys(fires), ...Object.keys(quiet)])
  for (const text of [...expressions, ...series]) {
    for (const name of namesIn(text)) assert.ok(METRICS.has(name), `${name} in ${text}`)
    for (const [, name = '', selector = ''] of text.matchAll(/\b(sluice_[a-z0-9_]+)\{([^}]*)\}/g)) {
      const metric = METRICS.get(namesIn(name)[0] ?? '')
      for (const [, label = '', operator, value = ''] of selector.matchAll(/(\w+)(=~|!=|=)"([^"]*)"/g)) {
        if (['instance', 'job', 'le'].includes(label)) continue
        const values = metric?.labels[label]
        assert.ok(values !== undefined, `${name} has no label ${label}`)
        // The names of nodes are the operator's own.
        if (operator !== '=~' && !values.includes('NODE'))
          assert.ok(values.includes(value), `${label}="${value}" in ${text}`)
      }
    }
    for (const [, by = ''] of text.matchAll(/\bby \(([^)]*)\)/g)) {
      for (const label of by.split(', ').filter((each) => !['instance', 'le', 'job'].includes(each)))
        assert.ok(
          namesIn(text).some((name) => METRICS.get(name)?.labels[label] !== undefined),
          `by (${label}) in ${text}`,
        )
    }
  }
})

/** Gauges that a panel combines over processes in another way than a process does over its threads, each with the reason. */
const COMBINED_OTHERWISE: Readonly<Record<string, string>> = {
  sluice_build_info: 'the sum is the number of processes',
  sluice_access_ws_connections: 'the threads of a process count in shared memory, processes do not',
  sluice_access_ws_subscriptions: 'the threads of a process count in shared memory, processes do not',
  sluice_access_grpc_streams: 'the threads of a process count in shared memory, processes do not',
  sluice_decoded_upstream_streams: 'processes read the same upstreams',
  sluice_execution_blocks_held: 'processes hold the same blocks',
}

test('a panel combines a gauge over processes as a process does over its threads', () => {
  const otherwise = new Set<string>()
  for (const { title, queries } of panels) {
    for (const { expr } of queries) {
      for (const [, rule, by = '', name = ''] of expr.matchAll(
        /\b(\w+)(?: by \(([^)]*)\))? \((sluice_[a-z0-9_]+)\{/g,
      )) {
        if (by.split(', ').includes('instance') || METRICS.get(name)?.merge === rule) continue
        assert.ok(
          Object.hasOwn(COMBINED_OTHERWISE, name),
          `${title}: ${METRICS.get(name)?.merge} of ${name}, not ${rule}`,
        )
        otherwise.add(name)
      }
    }
  }
  assert.deepEqual([...otherwise].sort(), Object.keys(COMBINED_OTHERWISE).sort())
})

test('the process selector of a board lists the processes that serve its metrics', () => {
  for (const board of BOARDS) {
    const { templating } = JSON.parse(grafanaJson(board)) as {
      templating: { list: { name: string; query: unknown }[] }
    }
    const selector = templating.list.find(({ name }) => name === 'instance')
    const [metric = ''] = namesIn(JSON.stringify(selector?.query))
    const shown = board.rows.flatMap(({ panels: inRow }) => inRow.flatMap(({ queries }) => queries))
    assert.ok(
      shown.some(({ expr }) => namesIn(expr).includes(metric)),
      `${board.title}: ${metric} is in none of its panels`,
    )
  }
})

test('promtool accepts every expression of the dashboards', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-rules-'))
  try {
    const rules = panels
      .flatMap(({ queries }) => queries)
      .map(({ expr }, at) => {
        const filled = expr.replaceAll('$__rate_interval', '1m').replaceAll('$__range', '1h')
        return `      - { record: "sluice:panel_${at}", expr: ${JSON.stringify(filled)} }`
      })
    writeFileSync(join(folder, 'panels.yml'), `groups:\n  - name: panels\n    rules:\n${rules.join('\n')}\n`)
    execFileSync('promtool', ['check', 'rules', join(folder, 'panels.yml')], { stdio: 'pipe' })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('promtool accepts the alerts, and each fires and stays quiet on its samples', () => {
  const checked = execFileSync('promtool', ['check', 'rules', 'alerts.yml'], { cwd: prometheus, encoding: 'utf8' })
  assert.match(checked, new RegExp(`SUCCESS: ${ALERTS.length} rules found`))
  assert.match(
    execFileSync('promtool', ['test', 'rules', 'alerts.test.yml'], { cwd: prometheus, encoding: 'utf8' }),
    /SUCCESS/,
  )
})

test('a broken rule fails its test', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-rules-'))
  try {
    const one = ALERTS.filter(({ name }) => name === 'SluiceUpstreamBehind')
    writeFileSync(join(folder, 'alerts.yml'), rulesYaml(one).replace('_lag_seconds > 20', '_lag_seconds > 200'))
    writeFileSync(join(folder, 'alerts.test.yml'), rulesTestYaml(one))
    assert.throws(() => execFileSync('promtool', ['test', 'rules', 'alerts.test.yml'], { cwd: folder, stdio: 'pipe' }))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('each alert has a section with steps to take', () => {
  const names = ALERTS.map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
  const page = readFileSync(join(root, 'docs/alerts.md'), 'utf8')
  for (const { name, does, summary } of ALERTS) {
    assert.ok(page.includes(`\n## ${name}\n`), `${name} has a section`)
    assert.ok(does.length > 0 && does.every((step) => step.length > 40), `${name} lists steps to take`)
    assert.match(summary, /\.$/)
  }
  // test/documents.test.ts checks that they exist, for every page.
  assert.ok(commandsNamedIn(page).length > 10)
})

test('every panel has a unique title in its row and describes how it is computed', () => {
  for (const board of BOARDS) {
    for (const { title, panels: inRow } of board.rows) {
      assert.equal(new Set(inRow.map((panel) => panel.title)).size, inRow.length, `${board.title}, ${title}`)
      for (const { how, title: name } of inRow) assert.ok(how.length > 15 && how.endsWith('.'), `${title}: ${name}`)
    }
    const json = JSON.parse(grafanaJson(board)) as { panels: { id: number; gridPos: Position }[] }
    const positions = json.panels.map(({ gridPos }) => gridPos)
    assert.equal(new Set(json.panels.map(({ id }) => id)).size, json.panels.length)
    for (const [at, one] of positions.entries())
      for (const other of positions.slice(at + 1)) assert.ok(!overlap(one, other), 'no panel lies on another')
  }
})

type Position = { readonly x: number; readonly y: number; readonly w: number; readonly h: number }

function overlap(a: Position, b: Position): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h
}
