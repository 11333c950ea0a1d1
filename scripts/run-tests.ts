import { globSync } from 'node:fs'
import { join, relative } from 'node:path'
import { run } from 'node:test'
import { inspect } from 'node:util'

export type TestOptions = {
  root: string
  patterns: string[]
  concurrency: number
  testTimeoutMs: number
  /** A test that leaves a socket or timer behind keeps its file alive; after this time without a report the run is aborted. */
  silenceMs: number
  /** A file whose process runs this much longer than its tests is named: what it left open holds one of the places of the run. Default 10 s. */
  lateMs?: number | undefined
  showSeeds: boolean
  /** Files to leave out: they have passed in an earlier part of the run. */
  isPassed?: ((path: string) => boolean) | undefined
  /** Called when all tests of a file have passed and none was skipped. */
  onPassed?: ((path: string, tests: number) => void) | undefined
  /** Interval of progress lines in a long run. */
  progressMs?: number | undefined
  report: (line: string) => void
}

export type TestTally = {
  passed: number
  failures: string[]
  skips: { test: string; reason: string }[]
}

const EXIT_AT_END = new URL('../test/support/process/exit-at-end.ts', import.meta.url).href
const NOTHING_REPORTED = 'reported no test: it has none, or something in it ended the process with exit code 0'

type FileState = {
  names: string[]
  hasSkips: boolean
  output: string
  failures: string[]
  seeds: Set<string>
  tests: number
  /** Duration of the tests and groups of the file, without what they contain. */
  testsMs: number
}

function newFileState(): FileState {
  return { names: [], hasSkips: false, output: '', failures: [], seeds: new Set(), tests: 0, testsMs: 0 }
}

/** Runs the test files, prints one line for each and the details of failures, and returns the results. */
export async function runTests(options: TestOptions): Promise<TestTally> {
  const { root, patterns, concurrency, testTimeoutMs, silenceMs, report: write } = options
  const tally: TestTally = { passed: 0, failures: [], skips: [] }
  const files = new Map<string, FileState>()
  const found = inOrder(globSync(patterns, { cwd: root, exclude: ['**/node_modules'] }))
  const paths = found.filter((path) => options.isPassed?.(path) !== true)
  if (paths.length === 0 && found.length > 0) return tally
  const running = new Map<string, number>()
  const silence = new AbortController()
  let watchdog: NodeJS.Timeout | undefined
  let filesDone = 0
  const reportProgress = () => {
    const now = [...running].map(([name, sinceMs]) => `${relative(root, name)} (${minutesSince(sinceMs)})`)
    write(`....  ${filesDone} of ${paths.length} files done; running: ${now.join(', ')}`)
  }
  const progress = options.progressMs === undefined ? undefined : setInterval(reportProgress, options.progressMs)

  const reports = run({
    files: paths.map((path) => join(root, path)),
    cwd: root,
    concurrency,
    timeout: testTimeoutMs,
    signal: silence.signal,
    execArgv: ['--disable-warning=ExperimentalWarning', '--import', EXIT_AT_END],
  })
  for await (const report of reports) {
    clearTimeout(watchdog)
    watchdog = setTimeout(() => {
      tally.failures.push(
        `no report for ${silenceMs / 1000} s, aborted; still running: ${[...running.keys()].join(', ')}`,
      )
      silence.abort()
    }, silenceMs)
    if (report.type === 'test:dequeue' && isWholeFile(report.data)) running.set(report.data.name, performance.now())
    if (report.type === 'test:complete' && isWholeFile(report.data) && running.delete(report.data.name)) filesDone += 1
    handleReport(report, { files, tally, options })
  }
  clearTimeout(watchdog)
  clearInterval(progress)
  if (files.size === 0) tally.failures.push(`no test file matches ${patterns.join(' ')}`)
  for (const failure of tally.failures) write(`FAILED  ${failure}`)
  return tally
}

/** Whole services before single files of `src/`: the long files come first, so that no core is idle while the last of them ends. */
function inOrder(paths: readonly string[]): string[] {
  const isUnit = (path: string) => path.startsWith('src/')
  return paths.toSorted((a, b) => Number(isUnit(a)) - Number(isUnit(b)) || (a < b ? -1 : 1))
}

function minutesSince(monotonicMs: number): string {
  return `${((performance.now() - monotonicMs) / 60_000).toFixed(1)} min`
}

type Context = { files: Map<string, FileState>; tally: TestTally; options: TestOptions }

function handleReport(report: { type: string; data: unknown }, { files, tally, options }: Context): void {
  const data = report.data as ReportData
  const entry = data.entryFile ?? data.file
  if (entry === undefined) return
  const path = relative(options.root, entry)
  const file = files.get(path) ?? newFileState()
  files.set(path, file)

  switch (report.type) {
    case 'test:stdout':
    case 'test:stderr':
      file.output += data.message
      if (/\bseed\b/i.test(data.message)) file.seeds.add(data.message.trim())
      return
    case 'test:diagnostic':
      if (/\bseed\b/i.test(data.message)) file.seeds.add(data.message.trim())
      return
    case 'test:start':
      file.names.length = data.nesting
      file.names.push(data.name)
      return
    case 'test:pass':
    case 'test:fail':
      validate(report.type === 'test:pass', data, { path, file, tally })
      if (isWholeFile(data)) reportFile({ path, file, options })
      return
    case 'test:summary':
      reportFile({ path, file, options, durationMs: data.duration_ms })
  }
}

function validate(
  passed: boolean,
  data: ReportData,
  { path, file, tally }: { path: string; file: FileState; tally: TestTally },
): void {
  const title = isWholeFile(data) ? path : `${path}: ${[...file.names.slice(0, data.nesting), data.name].join(' > ')}`
  const isSuite = data.details.type === 'suite'
  if (!isSuite) file.tests += 1
  if (data.nesting === 0 && !isWholeFile(data)) file.testsMs += data.details.duration_ms ?? 0
  if (isWholeFile(data) && passed) {
    tally.failures.push(`${path}: ${NOTHING_REPORTED}`)
    file.failures.push(NOTHING_REPORTED)
  } else if (data.skip !== undefined || data.todo !== undefined) {
    file.hasSkips = true
    tally.skips.push({ test: title, reason: String(data.skip ?? `todo ${data.todo}`) })
  } else if (passed) {
    tally.passed += isSuite ? 0 : 1
  } else if (data.details.error?.failureType !== 'subtestsFailed') {
    const { error } = data.details
    tally.failures.push(title)
    file.failures.push(
      `${title}\n${indent(inspect(error?.cause ?? error, { depth: 8, colors: process.stdout.isTTY }))}`,
    )
  }
}

function reportFile({
  path,
  file,
  options,
  durationMs,
}: {
  path: string
  file: FileState
  options: TestOptions
  durationMs?: number
}): void {
  const seconds = durationMs === undefined ? '' : `${(durationMs / 1000).toFixed(1).padStart(6)} s`
  const verdict = file.failures.length === 0 ? 'ok  ' : 'FAIL'
  options.report(`${verdict}  ${path.padEnd(64)} ${String(file.tests).padStart(4)} tests ${seconds}`)
  if (file.failures.length === 0 && !file.hasSkips && durationMs !== undefined) options.onPassed?.(path, file.tests)
  const lateMs = (durationMs ?? 0) - file.testsMs
  if (lateMs > (options.lateMs ?? 10_000))
    options.report(indent(`LATE: its process ran ${(lateMs / 1000).toFixed(0)} s longer than its tests`))
  for (const seed of options.showSeeds ? file.seeds : []) options.report(indent(seed))
  for (const failure of file.failures) options.report(`\n${indent(failure)}`)
  if (file.failures.length > 0 && file.output !== '')
    options.report(`\n${indent(`what ${path} printed:\n${indent(file.output)}`)}`)
}

/** The used fields of `node:test` reports; each kind of report has some of them. */
type ReportData = {
  name: string
  nesting: number
  file?: string
  /** The test file that was run. Missing when the report is about the file as a whole. */
  entryFile?: string
  message: string
  duration_ms: number
  skip?: string | boolean
  todo?: string | boolean
  details: { type?: string; duration_ms?: number; error?: { failureType?: string; cause?: unknown } }
}

function isWholeFile(data: { entryFile?: string; nesting: number; file?: string }): boolean {
  return data.entryFile === undefined && data.nesting === 0 && data.file !== undefined
}

function indent(text: string): string {
  return text.trimEnd().replaceAll(/^(?=.)/gm, '    ')
}
