import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { runSeeds, type SeedOutcome, type SeedRuns } from './run-seeds.ts'
import { WORLDS } from './worlds.ts'

/** The seeds that one thread runs. Seeds are independent; a world that works with real files needs a tenth of a second for one. */
type Share = { readonly world: string; readonly firstSeed: number; readonly seeds: number }
type Report = { readonly done: number } | { readonly outcome: SeedOutcome } | { readonly failure: string }

/** Progress is reported once per this many seeds. */
const REPORT_EVERY = 25

/** Runs the seeds of one world in several threads. The first failure in any of them ends all. */
export async function shareSeeds(
  world: string,
  { firstSeed, seeds, onSeed, threads }: SeedRuns & { readonly threads: number },
): Promise<SeedOutcome> {
  const done = new Map<Worker, number>()
  const sizes = shareSizes(seeds, threads)
  const workers = sizes.map((size, at) => {
    const before = sizes.slice(0, at).reduce((sum, each) => sum + each, 0)
    const share: Share = { world, firstSeed: firstSeed + before, seeds: size }
    return new Worker(import.meta.filename, { workerData: share })
  })
  try {
    const outcomes = await Promise.all(
      workers.map((worker) =>
        outcomeOf(worker, (count) => {
          done.set(worker, count)
          onSeed?.([...done.values()].reduce((sum, each) => sum + each, 0))
        }),
      ),
    )
    return joined(outcomes)
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()))
  }
}

/** Shares of nearly equal size, none empty. */
function shareSizes(seeds: number, threads: number): number[] {
  const shares = Math.min(seeds, threads)
  return Array.from({ length: shares }, (_, at) => Math.floor(seeds / shares) + (at < seeds % shares ? 1 : 0))
}

function outcomeOf(worker: Worker, onDone: (count: number) => void): Promise<SeedOutcome> {
  const { promise, resolve, reject } = Promise.withResolvers<SeedOutcome>()
  worker.on('message', (report: Report) => {
    if ('done' in report) onDone(report.done)
    else if ('outcome' in report) resolve(report.outcome)
    else reject(new Error(report.failure))
  })
  worker.once('error', reject)
  worker.once('exit', (code) => reject(new Error(`a simulator thread exited with ${code} before its seeds were done`)))
  return promise
}

function joined(outcomes: readonly SeedOutcome[]): SeedOutcome {
  const seen: Record<string, number> = {}
  for (const outcome of outcomes) {
    for (const [event, count] of Object.entries(outcome.seen)) seen[event] = (seen[event] ?? 0) + count
  }
  return {
    seeds: outcomes.reduce((sum, outcome) => sum + outcome.seeds, 0),
    seen,
    never: Object.keys(seen).filter((event) => seen[event] === 0),
  }
}

if (!isMainThread && parentPort !== null) {
  const { world: name, firstSeed, seeds } = workerData as Share
  const notify = (report: Report) => parentPort?.postMessage(report)
  const world = WORLDS.find((each) => each.name === name)
  try {
    if (world === undefined) throw new Error(`unknown world ${name}`)
    const onSeed = (done: number) => done % REPORT_EVERY === 0 && notify({ done })
    notify({ outcome: await runSeeds(world, { firstSeed, seeds, onSeed }) })
  } catch (error) {
    notify({ failure: error instanceof Error ? error.message : String(error) })
  }
}
