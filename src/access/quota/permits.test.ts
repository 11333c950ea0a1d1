import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Limits } from '../../contract/limits.ts'
import { createManualClock } from '../../core/clock.ts'
import { BUILT_IN_PLANS } from '../plan.ts'
import { compileTerms } from '../terms.ts'
import { Calendar } from './calendar.ts'
import { createLedger } from './ledger.ts'
import { QuotaMemory } from './memory.ts'
import { createQuotaMemory } from './memory-layout.ts'
import { createPermits } from './permits.ts'

const limits: Limits = { ...BUILT_IN_PLANS.starter, wsConnections: 2, grpcStreams: 0, wsSubscriptions: null }

describe('permits', () => {
  test('gives as many permits as the limit and one for each that is released', () => {
    const permits = createPermits()
    const [first, second] = [
      permits.acquire('sub_a', 'wsConnections', limits),
      permits.acquire('sub_a', 'wsConnections', limits),
    ]
    assert.ok(first.ok && second.ok)
    const third = permits.acquire('sub_a', 'wsConnections', limits)
    assert.deepEqual(third, { ok: false, reason: 'over-limit', limitName: 'wsConnections', limitSize: 2 })
    first.release()
    first.release()
    first[Symbol.dispose]()
    assert.equal(permits.taken('sub_a').wsConnections, 1)
    assert.equal(permits.acquire('sub_a', 'wsConnections', limits).ok, true)
    assert.equal(permits.acquire('sub_a', 'wsConnections', limits).ok, false)
  })

  test('a sweep of the accounts keeps those with permits', () => {
    const memory = new QuotaMemory(createQuotaMemory({ accountsMax: 4, threads: 1 }), 0)
    const permits = createPermits(memory)
    const ledger = createLedger({ memory, calendar: new Calendar(createManualClock()) })
    const permit = permits.acquire('sub_a', 'wsConnections', limits)
    assert.ok(permit.ok)
    ledger.sweep(0)
    assert.equal(permits.taken('sub_a').wsConnections, 1)
    permit.release()
    ledger.sweep(0)
    assert.equal(memory.find('sub_a'), 0)
  })

  test('those of a thread that died are released in slices of time, all before its number is used again', async () => {
    const buffer = createQuotaMemory({ accountsMax: 8, threads: 2 })
    const [main, dead] = [new QuotaMemory(buffer, 0), new QuotaMemory(buffer, 1)]
    for (let at = 0; at < 8; at++) {
      assert.ok(createPermits(dead).acquire(`sub_${at}`, 'wsConnections', limits).ok)
      assert.ok(createPermits(main).acquire(`sub_${at}`, 'wsConnections', limits).ok)
    }
    const left: number[] = []
    const taken = () => [0, 1, 2, 3, 4, 5, 6, 7].map((at) => createPermits(main).taken(`sub_${at}`).wsConnections)
    const turn = async () => void left.push(taken().reduce((sum, each) => sum + each, 0))
    await main.permitTable.reclaim(1, main.cellsEnd, { isSpent: () => true, yield: turn })
    assert.ok(left.length >= 8 && left[0] === 15, left.join())
    assert.deepEqual(taken(), [1, 1, 1, 1, 1, 1, 1, 1])
    assert.equal(createPermits(main).total().wsConnections, 8)
  })

  test('subscriptions and kinds of permit are independent', () => {
    const permits = createPermits()
    assert.equal(permits.acquire('sub_a', 'grpcStreams', limits).ok, false)
    for (let count = 0; count < 5000; count++)
      assert.equal(permits.acquire('sub_a', 'wsSubscriptions', limits).ok, true)
    assert.equal(permits.acquire('sub_b', 'wsConnections', limits).ok, true)
    assert.deepEqual(permits.taken('sub_a'), { wsConnections: 0, wsSubscriptions: 5000, grpcStreams: 0 })
    assert.deepEqual(permits.total(), { wsConnections: 1, wsSubscriptions: 5000, grpcStreams: 0 })
  })

  test('a limit lowered below the current count gives no permit until enough are released', () => {
    const slots = createPermits()
    const permits = [1, 2].map(() => slots.acquire('sub_a', 'wsConnections', limits))
    const lower = { ...limits, wsConnections: 1 }
    assert.equal(slots.acquire('sub_a', 'wsConnections', lower).ok, false)
    for (const permit of permits) if (permit.ok) permit.release()
    assert.deepEqual(slots.total(), { wsConnections: 0, wsSubscriptions: 0, grpcStreams: 0 })
    assert.equal(slots.acquire('sub_a', 'wsConnections', lower).ok, true)
  })

  test('a full table refuses the permits of further subscriptions, until one has none left', () => {
    const memory = new QuotaMemory(createQuotaMemory({ accountsMax: 4, threads: 1 }), 0)
    const permits = createPermits(memory)
    const ledger = createLedger({ memory, calendar: new Calendar(createManualClock()) })
    const terms = compileTerms({ ...limits, unitsPerSecond: 10 })
    const open = ledger.open('sub_open', terms, 0)
    const charge = () => open.charge(terms, terms.callOf('getSlot'), 0).ok
    assert.equal(charge(), true)
    const first = permits.acquire('sub_0', 'wsConnections', limits)
    let held = 1
    for (; held < 100_000; held++) if (!permits.acquire(`sub_${held}`, 'wsConnections', limits).ok) break
    assert.ok(held > 30_000 && held < 40_000, `${held} subscriptions have permits`)
    // Those that have some get more. A call of one without a place is an error, and leaves no lock behind.
    assert.equal(permits.acquire('sub_1', 'wsConnections', limits).ok, true)
    assert.throws(charge, /the table of accounts has no room/)
    assert.equal(permits.acquire('sub_new', 'wsConnections', limits).ok, false)
    assert.ok(first.ok)
    first.release()
    assert.equal(permits.acquire('sub_new', 'wsConnections', limits).ok, true)
    assert.equal(permits.taken('sub_new').wsConnections, 1)
    assert.equal(permits.taken('sub_0').wsConnections, 0)
  })
})
