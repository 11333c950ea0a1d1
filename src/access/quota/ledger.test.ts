import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Limits } from '../../contract/limits.ts'
import { createManualClock } from '../../core/clock.ts'
import { BUILT_IN_PLANS } from '../plan.ts'
import { createTermsTable } from '../terms.ts'
import { Calendar } from './calendar.ts'
import type { Charge } from './charge.ts'
import { createLedger } from './ledger.ts'
import { createSweep } from './sweep.ts'

const START = Date.parse('2026-11-15T12:00:00Z')
const own = (changes: Partial<Limits>): Limits => ({ ...BUILT_IN_PLANS.starter, ...changes })

function open(
  limits: Limits,
  options: { spentBefore?: Map<string, number>; accountsMax?: number; startMs?: number } = {},
) {
  const clock = createManualClock(options.startMs ?? START)
  const table = createTermsTable()
  const ledger = createLedger({ calendar: new Calendar(clock), ...options })
  const state = { limits }
  const books = (id = 'sub_a') => ledger.open(id, table.of(state.limits), clock.monotonicMs())
  return {
    clock,
    ledger,
    state,
    charge(method: string, id?: string): Charge {
      const terms = table.of(state.limits)
      return books(id).charge(terms, terms.callOf(method), clock.monotonicMs())
    },
    refund(method: string, id?: string): void {
      const terms = table.of(state.limits)
      books(id).refund(terms, terms.callOf(method), clock.monotonicMs())
    },
    view: (id?: string) => books(id).view(table.of(state.limits), clock.monotonicMs()),
  }
}

function spend(charge: (method: string) => Charge, method: string, max = 100_000): number {
  for (let count = 0; count < max; count++) if (!charge(method).ok) return count
  return max
}

describe('ledger', () => {
  test('holds ten seconds of units and refills by the millisecond', () => {
    const { charge, clock } = open(own({}))
    assert.deepEqual(charge('getSlot'), { ok: true, cost: 1, limit: 150, remaining: 149, resetMs: 67 })
    assert.equal(spend(charge, 'getSlot'), 149)
    assert.deepEqual(charge('getSlot'), {
      ok: false,
      reason: 'over-limit',
      limitName: 'unitsPerSecond',
      limitSize: 15,
      cost: 1,
      retryAfterMs: 67,
      limit: 150,
      remaining: 0,
      resetMs: 10_000,
    })
    clock.advance(66)
    assert.equal(charge('getSlot').ok, false)
    clock.advance(1)
    assert.equal(charge('getSlot').ok, true)
    clock.advance(3_600_000)
    assert.equal(spend(charge, 'getSlot'), 150)
  })

  test('retryAfterMs is exact for every cost', () => {
    for (const method of ['getSlot', 'getAccountInfo', 'getBlock', 'getTransaction', 'getProgramAccounts']) {
      const { charge, clock } = open(own({ unitsPerSecond: 7, sendsPerSecond: 5 }))
      spend(charge, 'getSlot')
      const refused = charge(method)
      assert.ok(!refused.ok)
      clock.advance(refused.retryAfterMs - 1)
      assert.equal(charge(method).ok, false, method)
      clock.advance(1)
      assert.equal(charge(method).ok, true, method)
    }
  })

  test('a refusal charges no limit', () => {
    const { charge, view, clock } = open(own({ methods: { sendTransaction: { perSecond: 1 } } }))
    assert.equal(spend(charge, 'sendTransaction'), 10)
    const before = view()
    for (let count = 0; count < 100; count++) assert.equal(charge('sendTransaction').ok, false)
    assert.deepEqual(view(), before)
    clock.advance(1000)
    assert.equal(spend(charge, 'sendTransaction'), 1)
  })

  test('names the limit with the longest wait', () => {
    const { charge, state } = open(
      own({ methods: { getBlock: { perSecond: 0.1 }, sendTransaction: { perSecond: 2 } } }),
    )
    assert.equal(charge('getBlock').ok, true)
    const block = charge('getBlock')
    assert.ok(!block.ok)
    assert.deepEqual([block.limitName, block.limitSize, block.retryAfterMs], ['methodPerSecond', 0.1, 10_000])
    assert.equal(spend(charge, 'sendTransaction'), 20)
    state.limits = own({ sendsPerSecond: 1 })
    assert.equal(spend(charge, 'sendTransaction'), 10)
    const send = charge('sendTransaction')
    assert.ok(!send.ok)
    assert.deepEqual([send.limitName, send.limitSize], ['sendsPerSecond', 1])
  })

  test('a call that costs more than ten seconds of units is still possible, at the rate', () => {
    const { charge, clock } = open(own({ unitsPerSecond: 1, sendsPerSecond: 1, batchItems: 5 }))
    assert.equal(charge('getProgramAccounts').ok, true)
    clock.advance(29_999)
    assert.equal(charge('getProgramAccounts').ok, false)
    clock.advance(1)
    assert.equal(charge('getProgramAccounts').ok, true)
  })

  test('a slow rate admits what it allows in a day', () => {
    for (const everySeconds of [11, 600, 1200, 1800, 3600, 86_400]) {
      const perSecond = 1 / everySeconds
      const { charge, clock } = open(own({ methods: { getProgramAccounts: { perSecond } } }))
      assert.equal(spend(charge, 'getProgramAccounts'), 1)
      const refused = charge('getProgramAccounts')
      assert.ok(!refused.ok && Math.abs(refused.retryAfterMs / (everySeconds * 1000) - 1) < 0.001)
      let admitted = 0
      for (let second = 0; second < 86_400; second++) {
        clock.advance(1000)
        if (charge('getProgramAccounts').ok) admitted += 1
      }
      const allowed = 86_400 / everySeconds
      assert.ok(Math.abs(admitted - allowed) <= 1 + allowed * 0.001, `${everySeconds} s: ${admitted} of ${allowed}`)
    }
  })

  test('a rate of zero allows no call, with an infinite retry time', () => {
    const { charge } = open(own({ sendsPerSecond: 0 }))
    const refused = charge('sendTransaction')
    assert.ok(!refused.ok)
    assert.equal(refused.retryAfterMs, Number.POSITIVE_INFINITY)
    assert.equal(charge('getSlot').ok, true)
  })

  test('without limits the rate-limit values are null', () => {
    const { charge } = open(own({ unitsPerSecond: null, sendsPerSecond: null }))
    assert.deepEqual(charge('sendTransaction'), { ok: true, cost: 1, limit: null, remaining: null, resetMs: 0 })
  })

  test('unknown methods share one cost and have no buckets of their own', () => {
    const { charge, view } = open(own({}))
    for (let count = 0; count < 100; count++) charge(`random${count}`)
    assert.equal(view().buckets.length, 2)
    assert.equal(view().remaining, 50)
  })

  test('a refund reverts the charge, up to the capacity', () => {
    const { charge, refund, view } = open(own({ unitsPerMonth: 1000 }))
    charge('getProgramAccounts')
    refund('getProgramAccounts')
    assert.deepEqual([view().remaining, view().month.used], [150, 0])
    refund('getProgramAccounts')
    assert.deepEqual([view().remaining, view().month.used], [150, 0])
  })

  test('a change of limits keeps the level up to the new capacity', () => {
    const { charge, state, view, clock } = open(own({}))
    for (let count = 0; count < 100; count++) charge('getSlot')
    state.limits = own({ unitsPerSecond: 200 })
    assert.equal(view().remaining, 50)
    clock.advance(1000)
    assert.equal(view().remaining, 250)
    state.limits = own({})
    assert.equal(view().remaining, 150)
    state.limits = own({ unitsPerSecond: 0.5, sendsPerSecond: 0.5, batchItems: 1 })
    assert.equal(view().remaining, 30)
  })

  test('closes accounts with full buckets; other accounts and the units of the month stay', () => {
    const { charge, ledger, clock, view } = open(own({ unitsPerMonth: 10_000 }))
    for (let at = 0; at < 100; at++) charge('getSlot', `sub_${at}`)
    clock.advance(1000)
    charge('getProgramAccounts', 'sub_7')
    ledger.sweep(clock.monotonicMs())
    assert.equal(ledger.accounts(), 1)
    assert.equal(view('sub_7').remaining, 120)
    assert.equal(view('sub_8').month.used, 1)
    assert.equal(view('sub_7').month.used, 31)
  })

  test('are closed in slices of time, with a turn of the event loop after each', async () => {
    const { charge, ledger, clock } = open(own({}))
    for (let at = 0; at < 10; at++) charge('getSlot', `sub_${at}`)
    clock.advance(1000)
    let turns = 0
    let turn = Promise.withResolvers<void>()
    const nextTurn = () => {
      turns += 1
      return turn.promise
    }
    const sweep = createSweep(ledger, clock, () => ({ isSpent: () => true, yield: nextTurn }))
    void sweep.run()
    void sweep.run()
    assert.deepEqual([turns, ledger.accounts()], [1, 9], 'one account in a turn, and one sweep at a time')
    for (; turns < 100 && ledger.accounts() > 0; await Promise.resolve()) {
      turn.resolve()
      turn = Promise.withResolvers<void>()
    }
    assert.equal(ledger.accounts(), 0)
    assert.ok(turns >= 9, `${turns}`)
  })

  test('are closed by the next sweep where one has failed', async () => {
    const clock = createManualClock()
    let sweeps = 0
    const ledger = {
      sweep() {
        sweeps += 1
        if (sweeps === 1) throw new Error('a defect')
        return true
      },
    }
    const sweep = createSweep(ledger, clock)
    await assert.rejects(async () => sweep.run(), /a defect/)
    await sweep.run()
    assert.equal(sweeps, 2)
  })

  test('are all examined again by the next sweep', () => {
    const { charge, ledger, clock } = open(own({}))
    for (let at = 0; at < 3; at++) charge('getSlot', `sub_${at}`)
    let isDone = ledger.sweep(clock.monotonicMs(), () => true)
    for (let slice = 0; slice < 100 && !isDone; slice++) isDone = ledger.sweep(clock.monotonicMs(), () => true)
    assert.deepEqual([isDone, ledger.accounts()], [true, 3])
    clock.advance(1000)
    assert.equal(ledger.sweep(clock.monotonicMs()), true)
    assert.equal(ledger.accounts(), 0)
  })

  test('at the maximum the oldest accounts are closed', () => {
    const { charge, ledger, view } = open(own({}), { accountsMax: 10 })
    for (let at = 0; at < 25; at++) charge('getSlot', `sub_${at}`)
    assert.equal(ledger.accounts(), 10)
    assert.equal(view('sub_0').month.used, 1)
  })
})

describe('units of the month', () => {
  const month = (unitsPerMonth: number) => own({ unitsPerSecond: null, unitsPerMonth })

  test('end with the month, to the millisecond', () => {
    const { charge, clock } = open(month(3), { startMs: Date.parse('2026-11-30T23:59:59.000Z') })
    assert.equal(spend(charge, 'getSlot'), 3)
    const refused = charge('getSlot')
    assert.ok(!refused.ok)
    assert.deepEqual([refused.limitName, refused.limitSize, refused.retryAfterMs], ['unitsPerMonth', 3, 1000])
    clock.advance(999)
    assert.equal(charge('getSlot').ok, false)
    clock.advance(1)
    assert.equal(spend(charge, 'getSlot'), 3)
  })

  test('continue after a restart from the value in the store', () => {
    const { charge, view } = open(month(10), { spentBefore: new Map([['sub_a', 7]]) })
    assert.equal(spend(charge, 'getSlot'), 3)
    assert.equal(view('sub_b').month.used, 0)
  })

  test('the value of the store counts for its month only', () => {
    const { charge, clock } = open(month(10), {
      spentBefore: new Map([['sub_a', 10]]),
      startMs: Date.parse('2026-11-30T23:59:59.000Z'),
    })
    clock.advance(1000)
    assert.equal(spend(charge, 'getSlot'), 10)
  })

  test('a call that costs more than the month allows has an infinite retry time', () => {
    const refused = open(month(10)).charge('getProgramAccounts')
    assert.ok(!refused.ok)
    assert.deepEqual([refused.limitName, refused.retryAfterMs], ['unitsPerMonth', Number.POSITIVE_INFINITY])
  })

  test('are reported when they are tighter than the bucket', () => {
    const { charge } = open(own({ unitsPerMonth: 100 }), { spentBefore: new Map([['sub_a', 90]]) })
    const charged = charge('getSlot')
    assert.deepEqual([charged.limit, charged.remaining], [100, 9])
  })

  test('a wall clock that jumps forth and back does not change the units', () => {
    for (const jumpMs of [3_600_000, 86_400_000, -3_600_000, -86_400_000]) {
      for (const startMs of [Date.parse('2026-11-30T23:30:00Z'), Date.parse('2026-12-01T00:30:00Z')]) {
        const { charge, clock } = open(month(5), { startMs })
        assert.equal(spend(charge, 'getSlot'), 5)
        clock.setWallMs(clock.nowMs() + jumpMs)
        for (let minute = 0; minute < 10; minute++) {
          clock.advance(60_000)
          assert.equal(charge('getSlot').ok, false, `jump ${jumpMs} from ${startMs}`)
        }
        clock.setWallMs(clock.nowMs() - jumpMs)
        clock.advance(60_000)
        assert.equal(charge('getSlot').ok, false)
      }
    }
  })
})
