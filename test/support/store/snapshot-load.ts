import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { followStore } from '../../../src/access/snapshot/follow.ts'
import { type OpenStoreOptions, openStore, type StoreLocation } from '../../../src/access/store/open.ts'
import { openPostgres } from '../../../src/platform/db/postgres.ts'
import { openSqlite } from '../../../src/platform/db/sqlite.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { secureRandom } from '../../../src/platform/process/random.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { startPostgres } from '../machine/postgres.ts'
import { seededSubscription, seedSubscriptions } from './seed.ts'

export type SnapshotFigures = {
  count: number
  /** Opening the store with the quick check, as commands do. */
  openMs: number
  /** From the open store to a complete snapshot. */
  loadMs: number
  rssMiB: number
  /** The full check that a server runs at its start. */
  checkMs: number
}

const deps = { clock: systemClock, random: secureRandom, log: silentLogger }

/** Fills a store in this process and loads it in another, so that only the memory of loading is measured. */
export async function measureSnapshot(engine: StoreLocation['engine'], count: number): Promise<SnapshotFigures> {
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'sluice-snapshot-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const position = await makeLocation(engine, folder, stack)
  const options = optionsFor(position, folder)
  await (await openStore(options, deps))[Symbol.asyncDispose]()
  {
    const opened = position.engine === 'sqlite' ? openSqlite(position, deps) : openPostgres(position, deps)
    await using database = await opened
    await seedSubscriptions(database, count)
  }
  const { stdout } = await promisify(execFile)(process.execPath, [
    import.meta.filename,
    JSON.stringify({ options, count }),
  ])
  return JSON.parse(stdout) as SnapshotFigures
}

async function makeLocation(
  engine: StoreLocation['engine'],
  folder: string,
  stack: AsyncDisposableStack,
): Promise<StoreLocation> {
  if (engine === 'sqlite') return { engine, file: join(folder, 'access.db') }
  const server = stack.use(await startPostgres())
  return { engine, url: server.url }
}

function optionsFor(location: StoreLocation, folder: string): OpenStoreOptions {
  const audit = { file: join(folder, 'audit.log'), mirror: 'bench', toolVersion: 'bench' }
  return { location, audit, check: 'quick' }
}

async function load({ options, count }: { options: OpenStoreOptions; count: number }): Promise<SnapshotFigures> {
  const startMs = performance.now()
  await using store = await openStore(options, deps)
  const openedMs = performance.now()
  await using follower = await followStore(store, deps)
  const loadedMs = performance.now()
  const rssMiB = process.memoryUsage.rss() / 1024 / 1024
  const { token } = seededSubscription(count - 1)
  if (follower.current().byDigest(token.sha256)?.token.id !== token.id) throw new Error('the snapshot is not complete')
  const checkStartMs = performance.now()
  const damage = await store.integrity()
  if (damage.length > 0) throw new Error(damage[0])
  return {
    count: follower.current().counts().subscriptions,
    openMs: Math.round(openedMs - startMs),
    loadMs: Math.round(loadedMs - openedMs),
    rssMiB: Math.round(rssMiB),
    checkMs: Math.round(performance.now() - checkStartMs),
  }
}

if (import.meta.main) process.stdout.write(JSON.stringify(await load(JSON.parse(process.argv[2] ?? ''))))
