import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { parseAccessOptions } from '../../../src/access/options.ts'
import { startAccess } from '../../../src/access/service.ts'
import { Snapshot } from '../../../src/access/snapshot/snapshot.ts'
import { openStore } from '../../../src/access/store/open.ts'
import { openThreadAccess, type ThreadAccessStart } from '../../../src/access/thread-access.ts'
import { openSqlite } from '../../../src/platform/db/sqlite.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { secureRandom } from '../../../src/platform/process/random.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'
import { seededSubscription, seedSubscriptions } from './seed.ts'

/**
 * Prints what a thread with the snapshot of many subscriptions costs, beside one with an empty snapshot: live MiB of the thread's heap, and resident
 * MiB of the process per thread, the least of several groups of threads.
 */
const SUBSCRIPTIONS = Number(process.argv[2])
const GROUPS = 2
const THREADS = 4
const READS = 200
/** As `platform/process/worker.ts`: what the garbage of a thread takes is not measured here. */
const YOUNG_MIB = 8
const deps = { clock: systemClock, random: secureRandom, log: silentLogger }
const lifecycle = { degraded() {}, recovered() {} }

type Figures = { heapMiB: number; residentMiB: number }

if (isMainThread) {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-threads-'))
  const location = { engine: 'sqlite', file: join(folder, 'access.db') } as const
  const audit = { file: join(folder, 'audit.log'), mirror: 'test', toolVersion: 'test' }
  const open = () => openStore({ location, audit, check: 'quick' }, deps)
  await (await open())[Symbol.asyncDispose]()
  {
    await using database = await openSqlite(location, deps)
    await seedSubscriptions(database, SUBSCRIPTIONS)
  }
  const store = await open()
  const registry = createMetricsRegistry()
  const threads = (1 + 2 * GROUPS) * THREADS + 1
  const access = await startAccess(
    { ...parseAccessOptions(), threads },
    { ...deps, store, registry, lifecycle, env: {} },
  )
  const { maps } = access.update().snapshot
  const snapshotBytes = Object.values(maps).reduce(
    (sum, { chunks, positions }) => sum + chunks.length * 2 ** 20 + 2 * positions.byteLength,
    0,
  )
  const workers: Worker[] = []
  const start = async (change: Partial<ThreadAccessStart>): Promise<Figures> => {
    settle()
    const before = process.memoryUsage.rss()
    let heap = 0
    for (let count = 0; count < THREADS; count++) {
      const worker = new Worker(new URL(import.meta.url), {
        argv: [String(SUBSCRIPTIONS)],
        workerData: { ...access.startDataOf(workers.length + 1), ...change },
        resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MIB },
      })
      workers.push(worker)
      const [bytes] = (await once(worker, 'message')) as [number]
      heap += bytes
    }
    settle()
    const mib = (bytes: number) => Number((bytes / THREADS / 2 ** 20).toFixed(2))
    return { heapMiB: mib(heap), residentMiB: mib(process.memoryUsage.rss() - before) }
  }
  const noSnapshot = { snapshot: Snapshot.empty().shared() }
  // The first threads load code that the others share.
  await start(noSnapshot)
  const empty: Figures[] = []
  const full: Figures[] = []
  for (let group = 0; group < GROUPS; group++) {
    empty.push(await start(noSnapshot))
    full.push(await start({}))
  }
  for (const worker of workers) await worker.terminate()
  await access[Symbol.asyncDispose]()
  await store[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
  process.stdout.write(
    JSON.stringify({ snapshotMiB: Math.round(snapshotBytes / 2 ** 20), empty: least(empty), full: least(full) }),
  )
} else {
  const access = openThreadAccess(workerData as ThreadAccessStart, {
    ...{ log: silentLogger, clock: systemClock, registry: createMetricsRegistry(), lifecycle },
    requestBookings() {},
  })
  let found = 0
  for (let at = 0; at < READS; at++) {
    const { token } = seededSubscription((at * SUBSCRIPTIONS) / READS)
    if (access.snapshot().byDigest(token.sha256) !== undefined) found += 1
  }
  settle()
  parentPort?.on('message', () => {})
  if (found > 0 && found < READS) throw new Error('the snapshot is not complete')
  parentPort?.postMessage(process.memoryUsage().heapUsed)
}

function settle(): void {
  globalThis.gc?.()
}

function least(figures: readonly Figures[]): Figures {
  return {
    heapMiB: Math.min(...figures.map(({ heapMiB }) => heapMiB)),
    residentMiB: Math.min(...figures.map(({ residentMiB }) => residentMiB)),
  }
}
