import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Alert, rulesYaml } from '../../../scripts/ops/alert.ts'

/** One scrape: the samples by series, as printed, and which of them are counters. */
export type Scrape = {
  readonly values: ReadonlyMap<string, number>
  readonly counters: ReadonlySet<string>
}

export const NOTHING: Scrape = { values: new Map(), counters: new Set() }

/** A scrape from the text that a process serves. */
export function parseScrape(text: string): Scrape {
  const values = new Map<string, number>()
  const counters = new Set<string>()
  const types = new Map<string, string>()
  for (const line of text.split('\n')) {
    const [, name = '', type = ''] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? []
    if (name !== '') types.set(name, type)
    const [, series = '', value = ''] = /^([a-z_]+(?:\{[^}]*\})?) (\S+)$/.exec(line) ?? []
    if (series === '') continue
    values.set(series, value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value))
    const metric = series.replace(/\{.*/, '')
    const type_ = types.get(metric) ?? types.get(metric.replace(/_(bucket|sum|count)$/, ''))
    if (type_ !== 'gauge') counters.add(series)
  }
  return { values, counters }
}

export async function scrape(...urls: string[]): Promise<Scrape> {
  const texts = await Promise.all(urls.map(async (url) => (await fetch(url)).text()))
  return parseScrape(texts.join('\n'))
}

/** What Prometheus sees of one instance: some scrapes while all is well, then the fault. */
export type Story = {
  readonly instance?: string
  readonly before: Scrape
  readonly after: Scrape
  /** The counters go on growing by as much with every scrape; otherwise the fault happens once. */
  readonly continues?: boolean
}

/** Prometheus's usual scrape interval. */
const INTERVAL_SECONDS = 15
const QUIET_SCRAPES = 40
const FAULT_SCRAPES = 80

/** Evaluates the rule with promtool on these samples. True when it fires at the end of the fault, or at any time during it with `once`. */
export function fires(alert: Alert, stories: readonly Story[], { at = FAULT_SCRAPES } = {}): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-alert-'))
  try {
    writeFileSync(join(folder, 'alerts.yml'), rulesYaml([alert]))
    const lines = [
      'rule_files: [alerts.yml]',
      `evaluation_interval: ${INTERVAL_SECONDS}s`,
      'tests:',
      `  - interval: ${INTERVAL_SECONDS}s`,
      '    input_series:',
      ...stories.flatMap((story) => seriesOf(alert, story, Math.max(at, FAULT_SCRAPES))),
      '    alert_rule_test:',
      `      - eval_time: ${(QUIET_SCRAPES + at - 1) * INTERVAL_SECONDS}s`,
      `        alertname: ${alert.name}`,
      '        exp_alerts: []',
    ]
    writeFileSync(join(folder, 'test.yml'), `${lines.join('\n')}\n`)
    const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', 'test.yml'], {
      cwd: folder,
      encoding: 'utf8',
    })
    if (status === 0) return false
    if (`${stdout}${stderr}`.includes(`alertname="${alert.name}"`)) return true
    throw new Error(`promtool: ${stdout}${stderr}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function seriesOf(
  alert: Alert,
  { instance = 'a', before, after, continues = false }: Story,
  faultScrapes: number,
): string[] {
  const used = new Set([...alert.expr.matchAll(/\b(up|sluice_[a-z0-9_]+)/g)].map(([, name]) => name))
  return [...after.values].flatMap(([series, value]) => {
    const [, name = '', labels = ''] = /^([a-z0-9_]+)(?:\{(.*)\})?$/.exec(series) ?? []
    if (!used.has(name)) return []
    const first = before.values.get(series)
    const step = continues && after.counters.has(series) && first !== undefined ? value - first : 0
    const quiet = Array.from({ length: QUIET_SCRAPES }, () => printValue(first))
    const faulty = Array.from({ length: faultScrapes }, (_, at) => printValue(value + at * step))
    const full = `${name}{${[labels, `instance="${instance}"`, 'job="sluice"'].filter((each) => each !== '').join(',')}}`
    return [
      `      - series: ${JSON.stringify(full)}`,
      `        values: ${JSON.stringify([...quiet, ...faulty].join(' '))}`,
    ]
  })
}

/** `_`: no sample. */
function printValue(value: number | undefined): string {
  return value === undefined ? '_' : String(value)
}
