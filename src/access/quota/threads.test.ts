import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startQuotaThreads } from '../../../test/support/access/quota-threads.ts'
import { createRandom, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import type { Limits } from '../../contract/limits.ts'
import { createManualClock } from '../../core/clock.ts'
import { until } from '../../platform/process/test-wait.ts'
import { BUILT_IN_PLANS } from '../plan.ts'
import { compileTerms } from '../terms.ts'
import { Calendar } from './calendar.ts'
import { createLedger } from './ledger.ts'
import { QuotaMemory } from './memory.ts'
import { createQuotaMemory } from './memory-layout.ts'

const START = Date.parse('2026-11-15T12:00:00Z')
const THREADS = 4
const IDS = ['sub_a', 'sub_b', 'sub_c']
const own = (changes: Partial<Limits>): Limits => ({ ...BUILT_IN_PLANS.starter, ...changes })

describe('threads that share the accounts of a process', () => {
  test('charge exactly what a sequential model allows, while limits change and accounts are closed', async (t) => {
    const random = createRandom(seedOf(t))
    const memory = createQuotaMemory({ accountsMax: 16, threads: THREADS + 1 })
    await using threads = await startQuotaThreads(memory, THREADS, START)
    const accounts = new QuotaMemory(memory, 0)
    const clock = createManualClock(START)
    const ledger = createLedger({ memory: accounts, calendar: new Calendar(clock) })
    /** Per subscription: units in the bucket, and spent in the month. */
    const model = new Map(IDS.map((id) => [id, { level: Number.NaN, used: 0 }]))
    let limits = own({ unitsPerSecond: 300, sendsPerSecond: null, unitsPerMonth: 40_000, wsConnections: 7 })
    let limitsVersion = 1
    const seen = { units: 0, refusals: 0, changes: 0 }

    const rounds = repeatsOf({ short: 40, full: 400 })
    for (let round = 0; round < rounds; round++) {
      const passedMs = random(3) === 0 ? 0 : random(4000)
      clock.advance(passedMs)
      const before = compileTerms(limits).buckets[0]
      assert.ok(before !== undefined)
      for (const books of model.values()) {
        if (Number.isNaN(books.level)) books.level = before.capacity
        books.level = Math.min(before.capacity, books.level + (passedMs * before.perSecond) / 1000)
      }
      const last = limits
      if (random(4) === 0) {
        // Odd threads learn the new limits a round later: they must not bring the old ones back.
        limits = own({ ...limits, unitsPerSecond: [300, 50, 0.5, 1000][random(4)] as number })
        limitsVersion += 1
        seen.changes += 1
      }
      const sizes = compileTerms(limits)
      const after = sizes.buckets[0]
      assert.ok(after !== undefined)
      for (const id of IDS) {
        const books = model.get(id)
        assert.ok(books !== undefined)
        // Adopts the limits and adds the bucket first, so that the order of the threads does not matter.
        const account = createLedger({
          memory: accounts,
          calendar: new Calendar(clock),
          limitsVersion: () => limitsVersion,
        }).open(id, sizes, clock.monotonicMs())
        const call = sizes.callOf('getSlot')
        if (account.charge(sizes, call, clock.monotonicMs()).ok) account.refund(sizes, call, clock.monotonicMs())
        const view = account.view(sizes, clock.monotonicMs())
        books.level = books.level >= before.capacity ? after.capacity : Math.min(after.capacity, books.level)
        assert.equal(view.buckets[0]?.remaining, Math.floor(books.level + 1e-6), `${id} before round ${round}`)
      }
      const reports = await Promise.all(
        Array.from({ length: THREADS }, (_, at) =>
          threads.round(at, {
            seed: random(2 ** 31),
            atMs: clock.monotonicMs(),
            steps: 200,
            subscriptions: IDS,
            limits: at % 2 === 1 ? last : limits,
            limitsVersion: at % 2 === 1 && last !== limits ? limitsVersion - 1 : limitsVersion,
            endless: false,
          }),
        ),
      )
      for (const id of IDS) {
        const books = model.get(id)
        assert.ok(books !== undefined)
        const units = reports.reduce((sum, report) => sum + (report[id]?.units ?? 0), 0)
        const refusedCost = Math.min(...reports.map((report) => report[id]?.refusedCost ?? Number.POSITIVE_INFINITY))
        const monthLeft = 40_000 - books.used
        books.level -= units
        books.used += units
        seen.units += units
        if (refusedCost < Number.POSITIVE_INFINITY) seen.refusals += 1
        assert.ok(books.level > -1e-6 && books.used <= 40_000, `${id}: ${books.level} left, ${books.used} used`)
        // Refunds may have come after the refusal; without them the cheapest refused call did not fit.
        const view = ledger.open(id, sizes, clock.monotonicMs()).view(sizes, clock.monotonicMs())
        assert.equal(view.month.used, books.used, `${id} in round ${round}`)
        assert.equal(view.buckets[0]?.remaining, Math.floor(books.level + 1e-6), `${id} in round ${round}`)
        assert.ok(monthLeft >= units)
        const permits = new Set(reports.map((report) => report[id]?.permits))
        assert.ok(
          [...permits].every((count) => count !== undefined && count >= 0 && count <= 7),
          [...permits].join(),
        )
      }
      if (random(3) === 0) ledger.sweep(clock.monotonicMs())
    }
    t.diagnostic(JSON.stringify(seen))
    assert.ok(seen.units > 1000 && seen.refusals > 10 && seen.changes > 2, JSON.stringify(seen))
  })

  test('a thread that does not know the newest limits yet does not bring the old ones back', () => {
    const memory = new QuotaMemory(createQuotaMemory({ accountsMax: 4, threads: 1 }), 0)
    const calendar = new Calendar(createManualClock(START))
    const limits = [
      { unitsPerSecond: 10, sendsPerSecond: 3 },
      { unitsPerSecond: 100, unitsPerMonth: 2000, sendsPerSecond: 50 },
    ]
    const [older, newer] = limits.map((changes) => compileTerms(own(changes)))
    assert.ok(older !== undefined && newer !== undefined)
    const ahead = createLedger({ memory, calendar, limitsVersion: () => 2 }).open('sub_a', newer, 0)
    const spend = (account: typeof ahead, terms: typeof newer) => account.charge(terms, terms.callOf('getSlot'), 0).ok
    for (let count = 0; count < 400; count++) assert.equal(spend(ahead, newer), true)
    const behind = createLedger({ memory, calendar, limitsVersion: () => 1 }).open('sub_a', older, 0)
    for (let count = 0; count < 400; count++) assert.equal(spend(behind, older), true)
    assert.equal(ahead.view(newer, 0).remaining, 200)
    assert.equal(ahead.view(newer, 0).month.used, 800)
    // A bucket that the thread with the old limits has added gets the new ones when a thread with them uses it.
    assert.equal(behind.charge(older, older.callOf('sendTransaction'), 0).ok, true)
    assert.equal(ahead.charge(newer, newer.callOf('sendTransaction'), 0).ok, true)
    const sends = (nowMs: number) =>
      ahead.view(newer, nowMs).buckets.find(({ limit }) => limit === 'sendsPerSecond')?.remaining
    assert.deepEqual([sends(0), sends(1000)], [28, 78], 'the level stays, the rate is the new one')
    // With the new limits it takes them over.
    const caughtUp = createLedger({ memory, calendar, limitsVersion: () => 3 }).open('sub_a', older, 0)
    assert.equal(caughtUp.view(older, 0).remaining, 100)
  })

  test('a thread whose calendar is still in the last month does not start the new one again', () => {
    const memory = new QuotaMemory(createQuotaMemory({ accountsMax: 4, threads: 1 }), 0)
    const terms = compileTerms(own({ unitsPerSecond: null, unitsPerMonth: 10 }))
    const [ahead, behind] = ['2026-12-01T00:00:00.100Z', '2026-11-30T23:59:59.900Z'].map((time) =>
      createLedger({ memory, calendar: new Calendar(createManualClock(Date.parse(time))) }).open('sub_a', terms, 0),
    )
    for (const account of [ahead, behind, ahead, behind, ahead])
      assert.equal(account?.charge(terms, terms.callOf('getSlot'), 0).ok, true)
    assert.equal(ahead?.view(terms, 0).month.used, 5)
  })

  test('a thread that is killed leaves no lock and no permit behind, and at most its last call charged', async (t) => {
    const seed = seedOf(t)
    const rounds = repeatsOf({ short: 6, full: 40 })
    for (let kill = 0; kill < rounds; kill++) {
      const memory = createQuotaMemory({ accountsMax: 16, threads: 3 })
      await using threads = await startQuotaThreads(memory, 2, START)
      const accounts = new QuotaMemory(memory, 0)
      const clock = createManualClock(START)
      const limits = own({ unitsPerSecond: null, sendsPerSecond: null, wsConnections: 50 })
      const round = { seed: seed + kill, atMs: 0, steps: 1000, subscriptions: ['sub_a'], limits, limitsVersion: 1 }
      threads.post(0, { ...round, endless: true })
      threads.post(1, { ...round, seed: seed + kill + 7, endless: true })
      await until('both to have charged', () => threads.admitted(0) > 10_000 && threads.admitted(1) > 10_000, 60_000)
      await threads.kill(0)
      await accounts.permitTable.reclaim(1, accounts.cellsEnd)
      const stopped = threads.admitted(0)
      await until('the other to go on', () => threads.admitted(1) > 100_000 + stopped, 60_000)
      await threads.kill(1)
      await accounts.permitTable.reclaim(2, accounts.cellsEnd)
      const terms = compileTerms(limits)
      const ledger = createLedger({ memory: accounts, calendar: new Calendar(clock) })
      const { used } = ledger.open('sub_a', terms, 0).view(terms, 0).month
      const forwarded = threads.admitted(0) + threads.admitted(1)
      const most = Math.max(...['getProgramAccounts', 'sendTransaction'].map((method) => terms.callOf(method).cost))
      assert.ok(
        used - forwarded >= -2 * most && used - forwarded <= 2 * most,
        `${used} charged, ${forwarded} forwarded`,
      )
      assert.equal(accounts.permitTable.total(0), 0)
      assert.equal(accounts.permitTable.hasAny(accounts.find('sub_a')), false)
    }
  })
})
