import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { openStore } from '../src/access/store/open.ts'
import { openSqlite } from '../src/platform/db/sqlite.ts'
import { startTestAdmin } from '../test/support/admin.ts'
import { openHandlers } from '../test/support/admin-handlers.ts'
import { STORE_DEPS } from '../test/support/store-engines.ts'
import { seedSubscriptions } from '../test/support/store-seed.ts'
import type { AdminTimes, AdminWork } from './support/admin-requests-thread.ts'

/**
 * The admin API over HTTP on a SQLite store of 100,000 subscriptions, each with a customer and a token: times of lists, searches, the overview and a
 * change, as a client in another thread measures them, and how long the event loop of the server was held meanwhile.
 *
 *   npx node bench/admin.ts [COUNT]
 */
const [count = 100_000] = process.argv.slice(2).map(Number)
const ROUNDS = 30
/** Below the rate limit of one administrator. */
const PAUSE_MS = 25
const LOOP_STEP_MS = 1

const cursor = (name: string) => Buffer.from(name).toString('base64url')
const middle = cursor(`subscription-${Math.floor(count / 2)}`)
const WORK: readonly AdminWork[] = [
  { name: 'first page of 100', path: '/v1/subscriptions?limit=100' },
  { name: 'page in the middle', path: `/v1/subscriptions?limit=100&cursor=${middle}` },
  { name: 'page of customers', path: '/v1/customers?limit=100' },
  { name: 'page of tokens', path: '/v1/tokens?limit=100' },
  { name: 'page of 100 suspended', path: '/v1/subscriptions?limit=100&state=suspended' },
  { name: 'search: many names', path: '/v1/subscriptions?search=99' },
  { name: 'search: one name', path: '/v1/subscriptions?search=tion-77777' },
  { name: 'search: no match', path: '/v1/subscriptions?search=nothing-has-this' },
  { name: 'search: one contact', path: '/v1/subscriptions?search=mail-4242@' },
  { name: 'search: many contacts', path: '/v1/subscriptions?search=mail-77' },
  { name: 'search: customers without match', path: '/v1/customers?search=nothing-has-this' },
  { name: 'overview', path: '/v1/overview' },
  { name: 'note added', method: 'POST', path: '/v1/notes', body: { subject: 'customer-5', text: 'bench' } },
]

const folder = await mkdtemp(join(tmpdir(), 'sluice-admin-bench-'))
try {
  const location = { engine: 'sqlite', file: join(folder, 'access.db') } as const
  const audit = { file: join(folder, 'audit.log'), mirror: 'bench', toolVersion: 'bench' }
  await (await openStore({ location, audit, check: 'quick' }, STORE_DEPS))[Symbol.asyncDispose]()
  {
    await using database = await openSqlite(location, STORE_DEPS)
    await seedSubscriptions(database, count)
  }
  const top = { atMs: 0, status: {}, sender: null, indexer: null, execution: null, upstreams: [], refusals: [] }
  await using api = await openHandlers(folder, { call: async (method) => (method === 'top' ? top : null) })
  await using admin = await startTestAdmin(api.store, { handlers: api.handlers })
  const { secret } = await admin.add('bench', 'owner')
  await pause(2000)

  const results: Record<string, object> = {}
  for (const work of WORK) {
    using delay = watchLoop()
    const times = await perform(work, admin.url, secret)
    results[work.name] = { ...times, loopMs: delay.longestMs() }
  }
  process.stdout.write(`${JSON.stringify({ bench: 'admin', count, results, node: process.version })}\n`)
} finally {
  await rm(folder, { recursive: true, force: true })
}

function perform(work: AdminWork, url: string, token: string): Promise<AdminTimes> {
  const { promise, resolve, reject } = Promise.withResolvers<AdminTimes>()
  const worker = new Worker(new URL('./support/admin-requests-thread.ts', import.meta.url), {
    workerData: { work, url, token, rounds: ROUNDS, pauseMs: PAUSE_MS },
  })
  worker.once('message', resolve).once('error', reject)
  return promise
}

function watchLoop(): Disposable & { longestMs(): number } {
  const histogram = monitorEventLoopDelay({ resolution: LOOP_STEP_MS })
  histogram.enable()
  return {
    longestMs: () => Number((histogram.max / 1e6 - LOOP_STEP_MS).toFixed(1)),
    [Symbol.dispose]: () => void histogram.disable(),
  }
}
