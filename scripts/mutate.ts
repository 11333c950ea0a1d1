/**
 * Mutation testing: puts single faults into security-relevant files and runs the tests that should fail. A fault that no test
 * detects is a survivor: a check that could be deleted. Not part of `npm test`: it takes a while.
 *
 *     npm run mutate -- [--count 160] [--seed 1] [--only src/indexer] [--minutes 60]
 *
 * Works in a copy of the tree, so the working tree is never touched.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createSeededRandom, type Random, randomInt } from '../src/core/random.ts'
import { type Mutant, mutantsOf } from './mutation/mutants.ts'
import { TARGETS } from './mutation/targets.ts'

const root = join(import.meta.dirname, '..')
const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '160' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    minutes: { type: 'string', default: '60' },
  },
})
/** A test that hangs has detected the fault. */
const TEST_MS_MAX = 90_000

type Job = { readonly file: string; readonly tests: readonly string[]; readonly mutant: Mutant }
type Outcome = 'noticed' | 'survived'

const jobs = chooseJobs()
const endMs = Date.now() + Number(values.minutes) * 60_000
const survivors: Job[] = []
const tally = new Map<string, { noticed: number; survived: number }>()
const baselines = new Set<string>()
let done = 0
await Promise.all(Array.from({ length: availableParallelism() }, () => work()))

report('\n| file | faults | noticed | survived |\n|---|---|---|---|')
for (const [file, { noticed, survived }] of [...tally].toSorted(([one], [other]) => one.localeCompare(other))) {
  report(`| ${file} | ${noticed + survived} | ${noticed} | ${survived} |`)
}
for (const { file, mutant } of survivors) report(`survived: ${file}:${mutant.line}  ${mutant.from}  ->  ${mutant.to}`)
report(`\n${done} faults, ${done - survivors.length} noticed, ${survivors.length} survived; seed ${values.seed}`)

/** The same number from every file, chosen by the seed. */
function chooseJobs(): Job[] {
  const random = createSeededRandom(Number(values.seed))
  const files = TARGETS.filter(({ file }) => file.includes(values.only))
  const perFile = files.map(({ file, tests }) => {
    const mutants = mutantsOf(readFileSync(join(root, file), 'utf8'))
    return shuffle(mutants, random).map((mutant) => ({ file, tests, mutant }))
  })
  const chosen: Job[] = []
  for (let round = 0; chosen.length < Number(values.count) && perFile.some((list) => list.length > round); round++) {
    for (const list of perFile) if (list[round] !== undefined) chosen.push(list[round] as Job)
  }
  return chosen.slice(0, Number(values.count))
}

async function work(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-mutate-'))
  try {
    for (const part of ['src', 'test', 'scripts', 'proto', 'docs', 'ops', 'package.json', 'tsconfig.json', 'sluice']) {
      cpSync(join(root, part), join(folder, part), { recursive: true })
    }
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    for (let job = jobs.shift(); job !== undefined && Date.now() < endMs; job = jobs.shift())
      await validate(job, folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The tests must pass without a fault. */
async function checkBaseline(tests: readonly string[], folder: string): Promise<void> {
  const key = tests.join(' ')
  if (baselines.has(key)) return
  baselines.add(key)
  if ((await runTests(tests, folder)) === 'noticed') throw new Error(`these tests fail without any fault: ${key}`)
}

async function validate(job: Job, folder: string): Promise<void> {
  await checkBaseline(job.tests, folder)
  const path = join(folder, job.file)
  const original = readFileSync(path, 'utf8')
  writeFileSync(path, job.mutant.source)
  const outcome = await runTests(job.tests, folder)
  writeFileSync(path, original)
  done++
  const entry = tally.get(job.file) ?? { noticed: 0, survived: 0 }
  entry[outcome]++
  tally.set(job.file, entry)
  if (outcome === 'survived') survivors.push(job)
  report(`${done}  ${outcome}  ${job.file}:${job.mutant.line}  ${short(job.mutant.from)}  ->  ${short(job.mutant.to)}`)
}

async function runTests(tests: readonly string[], folder: string): Promise<Outcome> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', '--test', ...tests], {
    cwd: folder,
    stdio: 'ignore',
    env: { ...process.env, SLUICE_SEED: values.seed },
    // A process group of its own, so that all processes of the tests can be killed.
    detached: true,
  })
  const endGroup = () => {
    try {
      process.kill(-(child.pid as number), 'SIGKILL')
    } catch {
      // Already ended.
    }
  }
  const timer = setTimeout(endGroup, TEST_MS_MAX)
  const [code] = (await once(child, 'exit')) as [number | null]
  clearTimeout(timer)
  endGroup()
  return code === 0 ? 'survived' : 'noticed'
}

function shuffle<T>(items: readonly T[], random: Random): T[] {
  return items
    .map((item) => ({ item, rank: randomInt(random, 2 ** 31) }))
    .toSorted((one, other) => one.rank - other.rank)
    .map(({ item }) => item)
}

function short(text: string): string {
  const line = text.replace(/\s+/g, ' ')
  return line.length > 60 ? `${line.slice(0, 57)}...` : line
}

function report(line: string): void {
  process.stdout.write(`${line}\n`)
}
