/**
 * The complete check of `npm test`: needs, format, lint, types, generated files, tests.
 *
 *     npm test                    everything, in its short form, seeded
 *     npm test -- src/access      only the tests under a path
 *     npm run test:full           everything in its long form with a new seed, which is printed; repetitions a tenth of their full counts, or SLUICE_FULL_SHARE
 *     npm run test:full -- FILE   one file with full counts
 *     npm run test:full -- --continue   the rest of an interrupted long run: files that passed on the same code are left out
 */
import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { MEASURING_TESTS } from '../test/measuring-tests.ts'
import { RECORDED_DATA_SKIP } from '../test/recorded-data.ts'
import { runChainMatrix } from './chain-matrix.ts'
import { prepareTestNeeds } from './needs.ts'
import { codeOf, openPassedFiles } from './passed-files.ts'
import { runAgain } from './run-again.ts'
import { runTests, type TestOptions, type TestTally } from './run-tests.ts'
import { prepareTestPackages } from './test-packages.ts'

/** Share of the full counts of repetitions when all files run in their long form, so that it ends within two hours on two cores. Each run has another seed. */
const FULL_SHARE = '0.1'

const root = join(import.meta.dirname, '..')
const { values, positionals } = parseArgs({
  options: { full: { type: 'boolean', default: false }, continue: { type: 'boolean', default: false } },
  allowPositionals: true,
})
const isCi = process.env['CI'] === 'true'
const isComplete = positionals.length === 0
const passedFiles =
  values.full && isComplete
    ? openPassedFiles(join(root, 'node_modules/.cache/sluice-full-run.jsonl'), {
        code: codeOf(root),
        seed: process.env['SLUICE_SEED'] ?? String(randomInt(1, 2 ** 31)),
        isContinued: values.continue,
      })
    : undefined
const seed = passedFiles?.seed ?? process.env['SLUICE_SEED'] ?? String(values.full ? randomInt(1, 2 ** 31) : 1)

process.chdir(root)

// Inherited by every step and test process. The pinned Node comes first, as in npm scripts.
process.env['PATH'] = `${join(root, 'node_modules/.bin')}:${process.env['PATH'] ?? ''}`
process.env['SLUICE_SEED'] = seed
if (values.full) process.env['SLUICE_FULL'] = '1'
if (values.full && isComplete) process.env['SLUICE_FULL_SHARE'] ??= FULL_SHARE
process.env['NODE_COMPILE_CACHE'] ??= join(root, 'node_modules/.cache/sluice')

const failedSteps: string[] = []
let missingNeeds: string[] = []
const NO_TESTS: TestTally = { passed: 0, failures: [], skips: [] }
let tally = NO_TESTS
const unstable: string[] = []

await step('needs', () => {
  missingNeeds = prepareTestNeeds(report)
  if (missingNeeds.length > 0) report(`MISSING: ${missingNeeds.join(', ')}: their tests cannot run here`)
  return missingNeeds.length === 0 || !isCi
})
if (!(await step('packages', () => prepareTestPackages(report)))) process.exit(1)
if (positionals.length === 0) {
  await step('format', () => runProgram('test/node_modules/.bin/biome', 'check', '.'))
  await step('lint', () => runTool('oxlint', '--type-aware', '--deny-warnings'))
  await step('types', () => runTool('tsc', '-p', 'tsconfig.json'))
  await step('types of the live page', () => runTool('tsc', '-p', 'src/dashboard/page'))
  await step('types of the console', () => runTool('tsc', '-p', 'src/console/page'))
  await step('types of the account page', () => runTool('tsc', '-p', 'src/account-page/page'))
  await step('generated', () => runNode('scripts/generate.ts', '--check'))
}
await step('tests', async () => {
  report(`seed ${seed}; to repeat: SLUICE_SEED=${seed} npm run ${values.full ? 'test:full' : 'test'}`)
  const options = {
    root,
    // One more than cores: many tests wait, for a deadline, a restart or another process.
    concurrency: availableParallelism() + 1,
    testTimeoutMs: values.full ? 2 * 3_600_000 : 300_000,
    silenceMs: values.full ? 2 * 3_600_000 : 360_000,
    showSeeds: values.full,
    progressMs: values.full ? 60_000 : undefined,
    report,
    isPassed: (path: string) => passedFiles?.has(chainNow(), path) ?? false,
    onPassed: (path: string, tests: number) => passedFiles?.add(chainNow(), path, tests),
  }
  if (passedFiles !== undefined && passedFiles.before.files > 0)
    report(`${passedFiles.before.files} files with ${passedFiles.before.tests} tests have passed in earlier parts`)
  const runAlone = (file: string) => runTests({ ...options, patterns: [file], concurrency: 1 })
  /** What failed runs again, alone. */
  async function runSettled(patterns: string[], changes: Partial<TestOptions> = {}): Promise<TestTally> {
    const first = await runTests({ ...options, ...changes, patterns })
    const settled = await runAgain(first, runAlone, report)
    unstable.push(...settled.unstable)
    return { ...first, failures: settled.failures }
  }
  if (isComplete) {
    const alone = values.full ? MEASURING_TESTS : []
    const isPassed = (path: string) => alone.includes(path) || options.isPassed(path)
    const measured = alone.length === 0 ? NO_TESTS : await runSettled([...alone], { concurrency: 1 })
    const others = await runSettled(['{src,test}/**/*.test.ts'], { isPassed })
    const all = joinTallies(measured, others)
    tally = await runChainMatrix(all, { isFull: values.full, seed: Number(seed), run: runSettled, report })
  } else tally = await runTests({ ...options, patterns: positionals.map(toPattern) })
  tally.passed += passedFiles?.before.tests ?? 0
  const refused = tally.skips.filter((skip) => !mayBeSkipped(skip.reason))
  for (const { test, reason } of tally.skips) report(`SKIPPED  ${test}: ${reason}`)
  return tally.failures.length === 0 && refused.length === 0 && tally.passed > 0
})

report(failedSteps.length === 0 ? '\nall steps passed' : `\nfailed steps: ${failedSteps.join(', ')}`)
report(
  `${tally.passed} passed, ${tally.failures.length} failed, ${tally.skips.length} skipped` +
    (unstable.length === 0 ? '' : `, ${unstable.length} UNSTABLE: ${unstable.join('; ')}`),
)
process.exitCode = failedSteps.length === 0 ? 0 : 1

/** Recordings may be missing anywhere; a missing program is tolerated outside CI, after it was reported. */
function mayBeSkipped(reason: string): boolean {
  return reason === RECORDED_DATA_SKIP || (!isCi && missingNeeds.some((need) => reason.includes(need)))
}

async function step(name: string, run: () => boolean | Promise<boolean>): Promise<boolean> {
  report(`\n== ${name}`)
  const startedMs = performance.now()
  const passed = await run()
  if (!passed) failedSteps.push(name)
  report(`== ${name}: ${passed ? 'ok' : 'FAILED'} in ${((performance.now() - startedMs) / 1000).toFixed(1)} s`)
  return passed
}

function joinTallies(one: TestTally, other: TestTally): TestTally {
  return {
    passed: one.passed + other.passed,
    failures: [...one.failures, ...other.failures],
    skips: [...one.skips, ...other.skips],
  }
}

function runTool(tool: string, ...args: string[]): boolean {
  return runProgram(`node_modules/.bin/${tool}`, ...args)
}

function runProgram(path: string, ...args: string[]): boolean {
  return spawnSync(join(root, path), args, { cwd: root, stdio: 'inherit' }).status === 0
}

function runNode(...args: string[]): boolean {
  return spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' }).status === 0
}

function toPattern(path: string): string {
  return path.endsWith('.ts') ? path : `${path.replace(/\/$/, '')}/**/*.test.ts`
}

/** The chain of the matrix that runs now, or empty. */
function chainNow(): string {
  return process.env['SLUICE_TEST_CHAIN'] ?? ''
}

function report(line: string): void {
  process.stdout.write(`${line}\n`)
}
