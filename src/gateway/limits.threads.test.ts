import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CAPS, HELD_BYTES, HELD_MAX, RATE, type StepReport, WINDOW_MS } from '../../test/support/access/limit-thread.ts'
import { startLimitThreads } from '../../test/support/access/limit-threads.ts'
import { createRandom, repeatsOf, seedOf } from '../../test/support/process/property.ts'
import { createManualClock } from '../core/clock.ts'
import { createKeyedBuckets } from '../core/keyed-buckets.ts'
import { createWindowCounts } from '../core/window-counts.ts'
import { createHeldBytes } from '../platform/http/held-bytes.ts'
import { FAILURES_MAX } from '../platform/net/auth-tarpit.ts'
import { createConnectionCaps } from '../platform/net/connection-caps.ts'
import { until } from '../platform/process/test-wait.ts'
import { createSharedLimits, openSharedLimits } from './limits.ts'

const THREADS = 4
const NUMBERS = Array.from({ length: THREADS }, (_, at) => at + 1)
const KEYS = ['192.0.2.1', '192.0.2.2', '198.51.100.3', '2001:db8::/64', '203.0.113.5']

describe('threads that count against one limit', () => {
  test('take, count and hold exactly what a sequential model allows', async (t) => {
    const random = createRandom(seedOf(t))
    const memory = createSharedLimits({ threads: THREADS + 1 })
    await using threads = startLimitThreads(memory, THREADS, KEYS)
    const limits = openSharedLimits(memory, 0)
    const clock = createManualClock()
    const nowMs = () => clock.monotonicMs()
    const buckets = createKeyedBuckets(RATE, nowMs, limits.buckets.health)
    const events = createWindowCounts(limits.failures, WINDOW_MS, nowMs)
    const model = new Map(KEYS.map((key) => [key, { level: RATE.burst, sinceMs: 0, events: 0 }]))
    const seen = { taken: 0, refusals: 0, held: 0, windows: 0 }

    const rounds = repeatsOf({ short: 30, full: 300 })
    for (let round = 0; round < rounds; round++) {
      const passedMs = random(3) === 0 ? 0 : random(60_000)
      clock.advance(passedMs)
      const atMs = clock.monotonicMs()
      const task = { kind: 'steps', atMs, steps: 300 } as const
      const reports = await Promise.all(
        NUMBERS.map((thread) => threads.run<StepReport>(thread, { ...task, seed: random(2 ** 31) })),
      )
      let heldInAll = 0
      for (const [key, books] of model) {
        const sum = (field: 'taken' | 'events' | 'held') =>
          reports.reduce((total, report) => total + (report[key]?.[field] ?? 0), 0)
        const refusedCost = Math.min(...reports.map((report) => report[key]?.refusedCost ?? Number.POSITIVE_INFINITY))
        books.level = Math.min(RATE.burst, books.level + (passedMs * RATE.perSecond) / 1000) - sum('taken')
        seen.taken += sum('taken')
        // Nothing is returned to a bucket, so what was refused does not fit at the end either, and what is left fits.
        assert.ok(books.level > -1e-6 && books.level < refusedCost, `${key}: ${books.level}, refused ${refusedCost}`)
        if (refusedCost < Number.POSITIVE_INFINITY) seen.refusals += 1
        const left = Math.floor(books.level + 1e-6)
        assert.equal(buckets.take(key, left + 1).ok, false, `${key} has more than ${left}`)
        assert.equal(buckets.take(key, left).ok, true, `${key} has ${left}`)
        books.level -= left
        if (books.events === 0 || atMs - books.sinceMs >= WINDOW_MS) {
          books.sinceMs = atMs
          books.events = 0
          seen.windows += 1
        }
        books.events += sum('events')
        assert.equal(events.of(key), books.events, `${key} in round ${round}`)
        assert.equal(limits.held.watches.of(key), sum('held'), `${key} in round ${round}`)
        assert.ok(sum('held') <= HELD_MAX.key)
        heldInAll += sum('held')
      }
      assert.equal(limits.held.watches.total, heldInAll)
      assert.ok(heldInAll <= HELD_MAX.total)
      seen.held = Math.max(seen.held, heldInAll)
    }
    t.diagnostic(JSON.stringify(seen))
    assert.ok(seen.taken > 5000 && seen.refusals > 20 && seen.held > 300 && seen.windows > 20, JSON.stringify(seen))
  })

  for (const subject of ['caps', 'heldBytes'] as const) {
    test(`${subject}: never above a limit while threads are killed, and everything is free again after reclaim`, async (t) => {
      const seed = seedOf(t)
      const memory = createSharedLimits({ threads: THREADS + 1 })
      await using threads = startLimitThreads(memory, THREADS, KEYS)
      const limits = openSharedLimits(memory, 0)
      const storm = { kind: 'storm', subject, rounds: Number.POSITIVE_INFINITY } as const
      for (const thread of NUMBERS) void threads.run(thread, { ...storm, seed: seed + thread }).catch(() => {})
      const moveOn = (but?: number) => {
        const from = NUMBERS.map((thread) => threads.taken(thread))
        return until(
          'every thread to have taken',
          () => NUMBERS.every((thread, at) => thread === but || threads.taken(thread) > (from[at] as number) + 5000),
          60_000,
        )
      }
      await moveOn()
      const kills = repeatsOf({ short: 6, full: 40 })
      for (let kill = 0; kill < kills; kill++) {
        const thread = 1 + (kill % THREADS)
        await threads.kill(thread)
        limits.reclaim(thread)
        await moveOn(thread)
        threads.restart(thread)
        void threads.run(thread, { ...storm, seed: seed + 100 * kill }).catch(() => {})
        await moveOn()
      }
      assert.deepEqual(
        threads.violations(),
        NUMBERS.map(() => 0),
      )
      for (const thread of NUMBERS) await threads.kill(thread)
      const clock = createManualClock()
      const caps = createConnectionCaps(CAPS, clock, limits.connections.rpc)
      const heldBytes = createHeldBytes(HELD_BYTES, clock, limits.held.bytes)
      assert.ok(caps.open() + heldBytes.total > 0, 'the threads died with something in hand')
      for (const thread of NUMBERS) limits.reclaim(thread)
      assert.deepEqual([caps.open(), heldBytes.total], [0, 0])
      const addresses = ['192.0.2.1', '192.0.2.2', '198.51.100.3']
      const entered = addresses.flatMap((address) => Array.from({ length: 15 }, () => caps.enter(address)))
      assert.equal(entered.filter((refusal) => refusal === undefined).length, CAPS.connectionsMax)
      assert.deepEqual([...new Set(entered)], [undefined, 'connections'])
      assert.deepEqual(
        [
          ...addresses.slice(0, 2).map((owner) => heldBytes.acquire(owner, 15_000)),
          heldBytes.acquire('203.0.113.5', 10_000),
        ],
        [true, true, true],
      )
      assert.equal(heldBytes.acquire('a new one', 1), false)
    })
  }

  test('20 failures spread over the threads delay the 21st, whichever thread sees it', async () => {
    const memory = createSharedLimits({ threads: THREADS + 1 })
    await using threads = startLimitThreads(memory, THREADS, KEYS)
    for (const last of NUMBERS) {
      const address = `192.0.2.${last}`
      const fail = (thread: number, count: number) => threads.run<number>(thread, { kind: 'failures', address, count })
      const early = await Promise.all(NUMBERS.map((thread) => fail(thread, FAILURES_MAX / THREADS)))
      assert.deepEqual(
        early,
        NUMBERS.map(() => 0),
      )
      assert.equal(await fail(last, 1), 1)
    }
  })
})
