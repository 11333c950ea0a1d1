import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { addNote } from '../src/access/provisioning/notes.ts'
import { Calendar } from '../src/access/quota/calendar.ts'
import { createQuotaMemory } from '../src/access/quota/memory-layout.ts'
import { openStore, type StoreLocation } from '../src/access/store/open.ts'
import type { AccessStore } from '../src/access/store/store.ts'
import { createUsageMemory } from '../src/access/usage/event-memory.ts'
import { openPostgres } from '../src/platform/db/postgres.ts'
import { openSqlite } from '../src/platform/db/sqlite.ts'
import { secureRandom } from '../src/platform/process/random.ts'
import { openHandlers } from '../test/support/admin/handlers.ts'
import { startTestAdmin } from '../test/support/admin/start.ts'
import { startPostgres } from '../test/support/machine/postgres.ts'
import { threadClock } from '../test/support/process/thread-clock.ts'
import { CONTEXT, STORE_DEPS } from '../test/support/store/engines.ts'
import { seededSubscription, seedSubscriptions } from '../test/support/store/seed.ts'
import type { AdminTimes, AdminWork } from './support/admin-requests-thread.ts'
import type { AdmitTask } from './support/admit-calls.ts'

/**
 * The admin API over HTTP on a store of 100,000 subscriptions, each with a customer, a token, usage of an hour in January and of the last hour, and an audit log of 500 lines:
 * times of lists, searches, reports, an export and a change, as a client in another thread measures them, and how long the event loop of the server was held meanwhile. Then the calls that
 * another thread admits beside these requests, by those that it admits alone: by its CPU time, and by real time, in which three threads share the cores.
 *
 *   npx node bench/admin.ts [COUNT] [sqlite|postgres]
 */
const [givenCount = '100000', engine = 'sqlite'] = process.argv.slice(2)
const count = Number(givenCount)
const ROUNDS = 10
/** Below the rate limit of one administrator. */
const PAUSE_MS = 25
const LOOP_STEP_MS = 1
const BATCH = 2000
const HOUR_MS = 3_600_000
const NOTES = 500
const ADMIT_MS = 2000
const ADMIT_TURNS = 3

const ids = Array.from({ length: count }, (_, at) => seededSubscription(at).subscription.id)
const cursor = (name: string) => Buffer.from(name).toString('base64url')
const middle = cursor(`subscription-${Math.floor(count / 2)}`)
const subscriptions = (query: string) => `/v1/subscriptions?limit=100&${query}`
const WORK: readonly AdminWork[] = [
  { name: 'first page of 100', path: subscriptions('') },
  { name: 'page in the middle', path: subscriptions(`cursor=${middle}`) },
  { name: 'page of 1000', path: `/v1/subscriptions?limit=1000&cursor=${middle}` },
  { name: 'page of customers', path: '/v1/customers?limit=100' },
  { name: 'page of tokens', path: '/v1/tokens?limit=100' },
  { name: 'page of 1000 tokens', path: '/v1/tokens?limit=1000' },
  { name: 'filter: active', path: subscriptions('state=active') },
  { name: 'filter: suspended, no match', path: subscriptions('state=suspended') },
  { name: 'filter: expired, no match', path: subscriptions('state=expired') },
  { name: 'filter: ending, no match', path: subscriptions('ending=7d') },
  { name: 'filter: customer-suspended, no match', path: subscriptions('state=customer-suspended') },
  { name: 'filter: removed customers, no match', path: '/v1/customers?state=removed' },
  { name: 'search: many names', path: subscriptions('search=99') },
  { name: 'search: one name', path: subscriptions('search=tion-77777') },
  { name: 'search: no match', path: subscriptions('search=nothing-has-this') },
  { name: 'search: one contact', path: subscriptions('search=mail-4242@') },
  { name: 'search: 1,111 contacts', path: subscriptions('search=mail-77') },
  { name: 'search: 11,111 contacts', path: subscriptions('search=mail-7') },
  { name: 'search: all contacts', path: subscriptions('search=example.com') },
  { name: 'search: all contacts, no state', path: subscriptions('search=example.com&state=cancelled') },
  { name: 'search: customers without match', path: '/v1/customers?search=nothing-has-this' },
  { name: 'overview', path: '/v1/overview' },
  { name: 'audit page', path: '/v1/audit?limit=100' },
  { name: 'audit page of 500', path: '/v1/audit?limit=500' },
  { name: 'note added', method: 'POST', path: '/v1/notes', body: { subject: 'customer-5', text: 'bench' } },
]
/** Work of seconds: performed twice. */
const LONG_WORK: readonly AdminWork[] = [
  { name: 'usage of a month', path: '/v1/usage?month=2026-01' },
  { name: 'usage by hour', path: '/v1/usage?since=2026-01-01&until=2026-01-03&by=hour' },
  { name: 'usage export, CSV', path: '/v1/usage/export?month=2026-01' },
  { name: 'usage export, JSON lines', path: '/v1/usage/export?month=2026-01&by=interface&format=jsonl' },
  // The first request adds up the hours, and keeps their sums for the next ones.
  { name: 'series of 48 hours', path: '/v1/overview/series' },
]
const LOAD = ['page in the middle', 'filter: suspended, no match', 'search: 1,111 contacts', 'overview', 'note added']

const folder = await mkdtemp(join(tmpdir(), 'sluice-admin-bench-'))
try {
  await using server = engine === 'postgres' ? await startPostgres() : undefined
  const location: StoreLocation =
    server === undefined
      ? { engine: 'sqlite', file: join(folder, 'access.db') }
      : { engine: 'postgres', url: server.url }
  const audit = { file: join(folder, 'audit.log'), mirror: 'bench', toolVersion: 'bench' }
  {
    await using store = await openStore({ location, audit, check: 'quick' }, STORE_DEPS)
    await using database =
      location.engine === 'sqlite' ? await openSqlite(location, STORE_DEPS) : await openPostgres(location, STORE_DEPS)
    await seedSubscriptions(database, count)
    const lastHour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - HOUR_MS
    for (let from = 0; from < count; from += BATCH) {
      const rows = ids.slice(from, from + BATCH).map(usageOf)
      await store.addUsage([...rows, ...rows.map((row) => ({ ...row, hour: lastHour }))], new Map())
    }
    await addNotes(store)
    // What the server does by itself some minutes after so many rows were added.
    if (location.engine === 'postgres') await database.rows('VACUUM ANALYZE', [])
  }
  const top = {
    ...{ atMs: 0, status: {}, calls: {}, units: 0, streams: { ws: 0, grpc: 0 } },
    sender: null,
    indexer: null,
    execution: null,
    upstreams: [],
    refusals: [],
  }
  await using api = await openHandlers(
    folder,
    {
      call: async (...[method]) => (method === 'top' ? top : null) as never,
      *monthUnits() {
        for (const subscriptionId of ids) yield { subscriptionId, units: 1000 }
      },
    },
    location,
  )
  await using admin = await startTestAdmin(api.store, { handlers: api.handlers })
  const { secret } = await admin.add('bench', 'owner')
  const run = (work: AdminWork, rounds: number) => perform(work, { url: admin.url, token: secret, rounds })
  await pause(2000)

  const results: Record<string, object> = {}
  for (const [works, rounds] of [
    [WORK, ROUNDS],
    [LONG_WORK, 2],
  ] as const)
    for (const work of works) {
      using delay = watchLoop()
      const times = await run(work, rounds)
      results[work.name] = { ...times, loopMs: delay.longestMs() }
      process.stderr.write(`${work.name}: ${JSON.stringify(results[work.name])}\n`)
    }
  const load = WORK.filter(({ name }) => LOAD.includes(name))
  const admit = await measureAdmit(async (isOver) => {
    for (let at = 0; !isOver(); at++) await run(load[at % load.length] as AdminWork, 3)
  })
  process.stdout.write(`${JSON.stringify({ bench: 'admin', engine, count, results, admit, node: process.version })}\n`)
} finally {
  await rm(folder, { recursive: true, force: true })
}

function usageOf(subscriptionId: string, at: number) {
  const hour = Date.UTC(2026, 0, 1 + (at % 2), at % 24)
  return { subscriptionId, hour, interface: 'rpc', calls: at, units: at, refused: 0 } as const
}

async function addNotes(store: AccessStore): Promise<void> {
  const on = { store, random: secureRandom, ...CONTEXT }
  for (let at = 0; at < NOTES; at++) await addNote(on, { subject: `customer-${at}`, text: 'bench' })
}

function perform(
  work: AdminWork,
  to: { readonly url: string; readonly token: string; readonly rounds: number },
): Promise<AdminTimes> {
  const { promise, resolve, reject } = Promise.withResolvers<AdminTimes>()
  const worker = new Worker(new URL('./support/admin-requests-thread.ts', import.meta.url), {
    workerData: { work, ...to, pauseMs: PAUSE_MS },
  })
  worker.once('message', resolve).once('error', reject)
  return promise
}

/** Turns without and with the load, so that both have the same state of the machine. */
async function measureAdmit(load: (isOver: () => boolean) => Promise<void>) {
  const task: AdmitTask = {
    accounts: createQuotaMemory({ accountsMax: 16, threads: 3 }),
    calendar: new Calendar(threadClock).shared,
    events: createUsageMemory(),
    thread: 1,
    subscription: 0,
  }
  const worker = new Worker(new URL('./support/admit-thread.ts', import.meta.url), { workerData: task })
  const admitFor = async (ms: number) => {
    worker.postMessage(ms)
    const [{ calls, cpuUs }] = (await once(worker, 'message')) as [{ calls: number; cpuUs: number }]
    return { perSecond: Math.round((calls / ms) * 1000), perCpuSecond: Math.round((calls / cpuUs) * 1e6) }
  }
  await admitFor(500)
  const alone: Awaited<ReturnType<typeof admitFor>>[] = []
  const beside: typeof alone = []
  for (let turn = 0; turn < ADMIT_TURNS; turn++) {
    alone.push(await admitFor(ADMIT_MS))
    let isOver = false
    const loading = load(() => isOver)
    beside.push(await admitFor(ADMIT_MS))
    isOver = true
    await loading
  }
  await worker.terminate()
  const median = (figures: typeof alone, of: keyof (typeof alone)[number]) =>
    figures.map((each) => each[of]).toSorted((a, b) => a - b)[ADMIT_TURNS >> 1] ?? 0
  const ratio = (of: keyof (typeof alone)[number]) => Number((median(beside, of) / median(alone, of)).toFixed(3))
  return { alone, beside, ratio: ratio('perSecond'), ratioPerCpuSecond: ratio('perCpuSecond') }
}

function watchLoop(): Disposable & { longestMs(): number } {
  const histogram = monitorEventLoopDelay({ resolution: LOOP_STEP_MS })
  histogram.enable()
  return {
    longestMs: () => Number((histogram.max / 1e6 - LOOP_STEP_MS).toFixed(1)),
    [Symbol.dispose]: () => void histogram.disable(),
  }
}
