import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { BATCH_MAX } from '../../test/support/access/thread.ts'
import { startAccessThreads } from '../../test/support/access/threads.ts'
import { type RedisServer, startRedis } from '../../test/support/machine/redis.ts'
import { createRandom, repeatsOf, seedOf } from '../../test/support/process/property.ts'
import { threadClock } from '../../test/support/process/thread-clock.ts'
import { openAccessFolder } from '../../test/support/store/access-folder.ts'
import { until } from '../platform/process/test-wait.ts'
import { BUILT_IN_PLANS, highestCost } from './plan.ts'
import { rotateToken } from './provisioning/tokens.ts'
import { compileTerms } from './terms.ts'

const THREADS = 4
const WAIT_MS = 120_000
const LIMITS = { ...BUILT_IN_PLANS.professional, unitsPerSecond: 2000, sendsPerSecond: 50, wsSubscriptions: 150 }
const MOST = highestCost(LIMITS)

type StormOptions = { readonly server?: RedisServer; readonly isServerLost?: boolean; readonly kills: number }

/** Four threads send batches, refund, subscribe, while tokens are rotated and threads killed. */
async function storm(t: TestContext, { server, isServerLost = false, kills }: StormOptions): Promise<void> {
  const seed = seedOf(t)
  const random = createRandom(seed)
  await using folder = await openAccessFolder(threadClock)
  // The last one has no limits of units, so that threads are killed within admitted calls.
  const subs = [
    await folder.subscribe('a', 'storm'),
    await folder.subscribe('b', 'storm'),
    await folder.subscribe('c', 'storm', { unitsPerSecond: null, sendsPerSecond: null }),
  ]
  const quota = server === undefined ? {} : { quota: { shared: { url: server.url } } }
  await using running = await folder.start({ plans: { storm: LIMITS }, ...quota }, THREADS + 1)
  const { access } = running
  const startMs = threadClock.monotonicMs()
  await using threads = await startAccessThreads(access, { threads: THREADS, subscriptions: subs.length, seed })
  const secrets = subs.map(({ secret }) => secret)
  const total = () => subs.reduce((sum, _, at) => sum + threads.forwarded(at), 0)
  const goOn = async (units: number) => {
    const from = total()
    await until('the threads to go on', () => total() >= from + units, WAIT_MS)
  }
  const rotate = async () => {
    const at = random(subs.length)
    secrets[at] = (await rotateToken(folder.on(), { subscription: ['a', 'b', 'c'][at] as string, graceMs: 0 })).secret
    threads.postAll({ do: 'storm', secrets: [...secrets] })
  }
  threads.postAll({ do: 'storm', secrets })
  await goOn(5000)
  const part = repeatsOf({ short: 5000, full: 100_000 })
  for (let round = 0; round < Math.max(kills, 2); round++) {
    await rotate()
    await goOn(part)
    if (isServerLost) {
      await server?.kill()
      await until('the loss to be noticed', () => running.health.has('quota'), WAIT_MS)
      await goOn(part)
      await server?.start()
      await until('the recovery', () => !running.health.has('quota'), WAIT_MS)
    }
    if (round < kills) {
      const thread = 1 + random(THREADS)
      await threads.kill(thread)
      await threads.start(thread)
      threads.post(thread, { do: 'storm', secrets: [...secrets] })
      await goOn(part)
    }
  }
  const stopped = []
  for (let thread = 1; thread <= THREADS; thread++) stopped.push(await threads.stop(thread))
  const seconds = (threadClock.monotonicMs() - startMs) / 1000
  const bucket = compileTerms(LIMITS).buckets[0]
  assert.ok(bucket !== undefined)

  await until('the new tokens', () => secrets.every((secret) => running.enter(secret).ok), WAIT_MS)
  await access.usage.flush()
  let charged = 0
  for (const [at, { id }] of subs.entries()) {
    const caller = running.enter(secrets[at] as string)
    assert.ok(caller.ok)
    const { used } = access.quota(caller).month
    charged += used
    const forwarded = threads.forwarded(at)
    const inFlight = used - forwarded
    const text = `${used} charged, ${forwarded} forwarded`
    assert.ok(inFlight >= 0 && inFlight <= kills * BATCH_MAX * MOST, text)
    const rows = await running.store.usage({ subscriptionId: id })
    const counted = rows.reduce((sum, row) => sum + row.units, 0)
    assert.ok(used - counted >= 0 && used - counted <= kills * MOST, `${used} charged, ${counted} counted`)
    if (kills === 0) assert.deepEqual([forwarded, counted], [used, used])
    // One process: with Redis it may be one chunk ahead of its bookings.
    const most: number = bucket.capacity + bucket.perSecond * seconds + (server === undefined ? 0 : bucket.chunk)
    if (caller.limits.unitsPerSecond !== null && !isServerLost)
      assert.ok(used <= most + 1, `${used} of ${most} in ${seconds} s`)
    const held: number = stopped.reduce((sum, report) => sum + (report.held[at] ?? 0), 0)
    assert.equal(access.permits.taken(id).wsSubscriptions, held, 'permits of threads that live')
    assert.ok(held <= LIMITS.wsSubscriptions)
  }
  const limited = stopped.reduce((sum, report) => sum + report.limited, 0)
  t.diagnostic(JSON.stringify({ charged, forwarded: total(), limited, seconds, wakes: threads.wakes.length }))
  assert.ok(charged > 10_000 && limited > 0)
  if (server !== undefined) assert.ok(threads.wakes.length > 0)
  for (let thread = 1; thread <= THREADS; thread++) await threads.kill(thread)
  assert.equal(access.permits.total().wsSubscriptions, 0)
}

describe('charged equals forwarded over four threads', () => {
  test('to the unit while no thread dies', (t) => storm(t, { kills: 0 }))
  test('and killed threads leave at most their calls in flight charged', (t) =>
    storm(t, { kills: repeatsOf({ short: 3, full: 40 }) }))
  test('with Redis', async (t) => {
    await using server = await startRedis()
    await storm(t, { server, kills: 0 })
  })
  test('with Redis, lost and back, and killed threads', async (t) => {
    await using server = await startRedis()
    await storm(t, { server, isServerLost: true, kills: repeatsOf({ short: 2, full: 10 }) })
  })
})
