import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { addBilledCustomer, FROM_MS, HOUR_MS, usageOf } from '../../../test/support/admin/billing.ts'
import { CONTEXT, openSqliteStore } from '../../../test/support/store/engines.ts'
import type { BillingEvent } from '../../access/store/billing/tables.ts'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import type { BillingSinkName } from './options.ts'
import { createPusher } from './pusher.ts'
import { beginBilling } from './service.ts'
import type { BatchResult, BillingSink } from './sink.ts'

type Limits = Pick<BillingSink, 'batchMax' | 'parallel' | 'repeatWithinMs' | 'ageMaxMs' | 'laneOf'>

const STRIPE: Limits = { batchMax: 1, parallel: 8, repeatWithinMs: 23 * HOUR_MS, ageMaxMs: 839 * HOUR_MS }
const sent = (events: readonly BillingEvent[]): BatchResult => ({
  kind: 'settled',
  results: events.map(() => ({ kind: 'sent' })),
})
const LIMITED: BatchResult = { kind: 'failed', reason: 'HTTP 429', isCounted: false }
const UNKNOWN: BatchResult = { kind: 'failed', reason: 'HTTP 500', isCounted: undefined }

/** A pusher on a store with one hour of usage of each customer, and a billing system that responds as `respond` says. */
async function setUp(
  t: TestContext,
  { kind = 'lago' as BillingSinkName, limits = {}, names = ['one'], startErrorMs = 0 } = {},
) {
  const home = await openSqliteStore()
  t.after(() => home[Symbol.asyncDispose]())
  const { store } = home
  const clock = createManualClock(FROM_MS)
  const random = createSeededRandom(1)
  for (const name of names) {
    await addBilledCustomer(store, name)
    await store.addUsage([usageOf(name, FROM_MS, 5)], new Map())
  }
  await beginBilling(store.billing, kind, { clock, random, fromMs: FROM_MS })
  const on = {
    ...{ store, clock },
    /** The batches that were sent, by the ids of their subscriptions. */
    batches: [] as string[][],
    respond: sent as (events: readonly BillingEvent[]) => BatchResult | Promise<BatchResult>,
  }
  const sink: BillingSink = {
    ...{ batchMax: 100, parallel: 1, ...limits },
    async send(events) {
      on.batches.push(events.map(({ subscriptionId }) => subscriptionId))
      return on.respond(events)
    },
    [Symbol.dispose]() {},
  }
  clock.advance(2 * HOUR_MS)
  clock.setWallMs(clock.nowMs() + startErrorMs)
  const recordedMs = await store.billing.lastHour(0, Number.MAX_SAFE_INTEGER)
  const subject = kind === 'lago' ? ('subscription' as const) : ('customer' as const)
  const pusher = createPusher(
    { sink: kind, quantities: ['units'], settleMs: 300_000, subject, fromMs: FROM_MS },
    { store, sink, clock, random, log: silentLogger, owner: 'a', recordedMs },
  )
  const passes = async (count = 3) => {
    for (let pass = 0; pass < count; pass++) await pusher.pass()
  }
  const dead = () => store.billing.dead(kind, 100)
  return { on, store, clock, pusher, passes, dead }
}

test('a process that has lost the right to send, or whose clock was set back, takes it anew before it sends', async (t) => {
  const { on, store, clock, pusher, passes } = await setUp(t)
  await passes()
  assert.equal(on.batches.length, 1)
  // Another machine, whose clock is two minutes ahead, took the right.
  const nowMs = clock.nowMs() + 120_000
  assert.ok(await store.billing.lease('lago', { owner: 'b', nowMs, untilMs: nowMs + 60_000 }))
  await store.addUsage([usageOf('one', FROM_MS, 1)], new Map())
  await passes()
  assert.equal(on.batches.length, 1, 'nothing is sent without the right')
  await store.billing.release('lago', 'b')
  await pusher.pass()
  assert.equal(on.batches.length, 2)
  clock.setWallMs(clock.nowMs() - HOUR_MS)
  await pusher.pass()
  assert.equal((await store.billing.state('lago'))?.leaseUntil, clock.nowMs() + 60_000)
})

const YEAR_MS = 365 * 24 * HOUR_MS

test('the right of a process that ended while its clock was a year ahead is taken after a minute without a sign of it', async (t) => {
  const { on, store, clock, passes } = await setUp(t)
  const aheadMs = clock.nowMs() + YEAR_MS
  const lease = (untilMs: number) => store.billing.lease('lago', { owner: 'b', nowMs: aheadMs, untilMs })
  assert.ok(await lease(aheadMs + 60_000))
  await passes()
  clock.advance(30_000)
  assert.ok(await lease(aheadMs + 90_000))
  await passes()
  clock.advance(59_999)
  await passes()
  assert.equal(on.batches.length, 0, 'it renewed its right less than a minute ago')
  clock.advance(1)
  await passes()
  assert.equal(on.batches.length, 1)
})

test('a clock that is ahead for a moment closes no hour and makes no usage too old', async (t) => {
  const { on, store, clock, passes, dead } = await setUp(t, { kind: 'stripe', limits: STRIPE })
  await store.billing.setBillingId(CONTEXT, 'cus_one', 'cus_AtStripe')
  on.respond = () => LIMITED
  await passes()
  const openHour = FROM_MS + 2 * HOUR_MS
  await store.addUsage([usageOf('one', openHour, 1)], new Map())
  clock.setWallMs(clock.nowMs() + YEAR_MS)
  clock.advance(10_000)
  await passes()
  clock.setWallMs(clock.nowMs() - YEAR_MS)
  on.respond = sent
  clock.advance(200_000)
  await passes()
  assert.deepEqual([on.batches.length, await dead()], [3, []], 'the event that waited, in three attempts')
  assert.equal((await store.billing.state('stripe'))?.plannedHour, FROM_MS)
})

test('after a start with a clock that was ahead, the hours that are still open get their events when they have settled', async (t) => {
  const { on, store, clock, passes } = await setUp(t)
  // What a process leaves whose clock is a year ahead at its start.
  await store.billing.openHour('lago', FROM_MS + YEAR_MS)
  const openHour = FROM_MS + 2 * HOUR_MS
  await passes(6)
  for (let flushes = 0; flushes < 3; flushes++) {
    await store.addUsage([usageOf('one', openHour, 1)], new Map())
    await passes()
  }
  assert.equal(on.batches.length, 1, 'the closed hour')
  clock.advance(HOUR_MS + 300_000)
  await passes(6)
  assert.equal(on.batches.length, 2)
  assert.equal((await store.billing.state('lago'))?.plannedHour, openHour, 'corrected by a clock that is certain')
})

test('a clock that is ahead at the start of the process and corrected after an hour makes no further mistakes', async (t) => {
  const { on, store, clock, passes, dead } = await setUp(t, {
    kind: 'stripe',
    limits: STRIPE,
    startErrorMs: YEAR_MS,
  })
  clock.advance(HOUR_MS)
  await passes()
  await store.billing.setBillingId(CONTEXT, 'cus_one', 'cus_AtStripe')
  clock.setWallMs(FROM_MS + 3 * HOUR_MS)
  await store.addUsage([usageOf('one', FROM_MS + 3 * HOUR_MS, 1)], new Map())
  await passes()
  assert.deepEqual([on.batches.length, await dead()], [1, []], 'the closed hour')
  clock.advance(HOUR_MS + 300_000)
  await passes()
  assert.deepEqual([on.batches.length, await dead()], [2, []])
})

test('a clock that is behind at the start of the process plans no hour anew, and the correction is adopted at once', async (t) => {
  const { on, store, clock, passes } = await setUp(t, { startErrorMs: -48 * HOUR_MS })
  const lastHour = FROM_MS + HOUR_MS
  await store.billing.openHour('lago', lastHour)
  await passes()
  assert.equal((await store.billing.state('lago'))?.plannedHour, lastHour)
  clock.setWallMs(FROM_MS + 2 * HOUR_MS + 300_000)
  clock.advance(1000)
  await passes()
  assert.deepEqual(on.batches, [['sub_one']])
})

test('outcomes are recorded by the process that has the right to send, for events that still wait', async (t) => {
  const { on, store, passes, dead } = await setUp(t)
  on.respond = () => ({ kind: 'settled', results: [{ kind: 'refused', reason: 'no plan' }] })
  await passes()
  const [letter] = await dead()
  assert.ok(letter)
  const outcome = { eventKey: letter.eventKey, state: 'sent', doubtSince: null, reason: null } as const
  await assert.rejects(store.billing.put('lago', 'b', [outcome]), { code: 'wrong-state', message: /another process/ })
  await store.billing.put('lago', 'a', [outcome])
  assert.equal((await dead()).length, 1, 'a dead letter stays one until the operator decides')
})

test('while sending is paused nothing is made or sent', async (t) => {
  const { on, store, passes } = await setUp(t)
  await store.billing.setPaused(CONTEXT, 'lago', true)
  await passes()
  assert.deepEqual([on.batches.length, (await store.billing.summary('lago')).waiting], [0, 0])
  await store.billing.setPaused(CONTEXT, 'lago', false)
  await passes()
  assert.equal(on.batches.length, 1)
})

test('usage of hours before the first day that is sent is not sent, also where it arrives late', async (t) => {
  const { on, store, passes } = await setUp(t)
  await passes()
  await store.addUsage([usageOf('one', FROM_MS - HOUR_MS, 7), usageOf('one', FROM_MS, 1)], new Map())
  let sum = 0
  on.respond = (events) => {
    for (const { amount } of events) sum += amount
    return sent(events)
  }
  await passes(6)
  assert.equal(sum, 1)
})

test('an attempt in doubt is repeated for 23 hours; then it is a dead letter', async (t) => {
  for (const [afterMs, state] of [
    [23 * HOUR_MS, 'repeated'],
    [23 * HOUR_MS + 1, 'dead'],
  ] as const) {
    const { on, store, clock, passes, dead } = await setUp(t, { kind: 'stripe', limits: STRIPE })
    await store.billing.setBillingId(CONTEXT, 'cus_one', 'cus_AtStripe')
    on.respond = () => UNKNOWN
    await passes()
    on.respond = sent
    clock.advance(afterMs)
    await passes()
    assert.deepEqual([on.batches.length, (await dead()).length], state === 'dead' ? [1, 1] : [2, 0], state)
  }
})

test('an event in doubt that is refused later stays in doubt: a retry repeats it only where that is asked for', async (t) => {
  const refused = (events: readonly BillingEvent[]): BatchResult => ({
    kind: 'settled',
    results: events.map(() => ({ kind: 'refused', reason: 'the meter is archived' })),
  })
  for (const [first, isUnknown] of [
    [UNKNOWN, true],
    [LIMITED, false],
  ] as const) {
    const { on, store, clock, passes, dead } = await setUp(t, { kind: 'stripe', limits: STRIPE })
    await store.billing.setBillingId(CONTEXT, 'cus_one', 'cus_AtStripe')
    on.respond = () => first
    await passes()
    on.respond = refused
    clock.advance(HOUR_MS)
    await passes()
    assert.deepEqual(
      (await dead()).map(({ doubtSince, reason }) => [doubtSince !== null, reason]),
      [[isUnknown, 'the meter is archived']],
    )
    // Stripe would count it again: it does not recognize the identifier of the first attempt any more.
    clock.advance(48 * HOUR_MS)
    on.respond = sent
    const which = { isUnknownIncluded: false, isMarkedSent: false }
    const { changed } = await store.billing.retry(CONTEXT, 'stripe', which)
    await passes()
    assert.deepEqual([changed, on.batches.length], isUnknown ? [0, 2] : [1, 3])
  }
})

test('an attempt in doubt is neither repeated nor buried while only the wall clock says that it is too old', async (t) => {
  const { on, store, clock, passes, dead } = await setUp(t, { kind: 'stripe', limits: STRIPE })
  await store.billing.setBillingId(CONTEXT, 'cus_one', 'cus_AtStripe')
  on.respond = () => UNKNOWN
  await passes()
  on.respond = sent
  clock.advance(HOUR_MS)
  clock.setWallMs(clock.nowMs() + 48 * HOUR_MS)
  await passes()
  assert.deepEqual([on.batches.length, await dead()], [1, []], 'it waits')
  clock.setWallMs(clock.nowMs() - 48 * HOUR_MS)
  await passes()
  assert.deepEqual([on.batches.length, await dead()], [2, []], 'it is sent when the clock is back')
})

test('a clock that is set back does not change how long an attempt has been in doubt', async (t) => {
  const { on, store, clock, passes, dead } = await setUp(t, { kind: 'stripe', limits: STRIPE })
  await store.billing.setBillingId(CONTEXT, 'cus_one', 'cus_AtStripe')
  on.respond = () => UNKNOWN
  await passes()
  on.respond = sent
  clock.advance(24 * HOUR_MS)
  clock.setWallMs(clock.nowMs() - 48 * HOUR_MS)
  await passes()
  assert.deepEqual([on.batches.length, (await dead()).length], [1, 1])
})

test('an attempt that was surely not counted leaves no doubt, however long the outage is', async (t) => {
  const { on, store, clock, passes, dead } = await setUp(t, { kind: 'stripe', limits: STRIPE })
  await store.billing.setBillingId(CONTEXT, 'cus_one', 'cus_AtStripe')
  on.respond = () => LIMITED
  await passes()
  clock.advance(48 * HOUR_MS)
  on.respond = sent
  await passes()
  assert.deepEqual([on.batches.length, await dead()], [2, []])
})

test('usage that is older than the billing system accepts is a dead letter and is not sent', async (t) => {
  for (const [ageMs, count] of [
    [839 * HOUR_MS, 0],
    [839 * HOUR_MS + 1, 1],
  ] as const) {
    const { on, store, clock, passes, dead } = await setUp(t, { kind: 'stripe', limits: STRIPE })
    clock.advance(ageMs - 2 * HOUR_MS)
    await store.billing.setBillingId(CONTEXT, 'cus_one', 'cus_AtStripe')
    await passes()
    const letters = await dead()
    assert.deepEqual([letters.length, on.batches.length], [count, 1 - count])
    for (const { reason } of letters) assert.match(reason ?? '', /^too old: stripe does not accept/)
  }
})

test('a batch that is refused as a whole is halved until the event is found; the others are sent', async (t) => {
  const names = ['a', 'b', 'c', 'd', 'e']
  const { on, passes, dead } = await setUp(t, { names })
  on.respond = (events) =>
    events.some(({ subscriptionId }) => subscriptionId === 'sub_d')
      ? { kind: 'rejected', reason: 'no d' }
      : sent(events)
  await passes()
  assert.deepEqual(
    (await dead()).map(({ subscriptionId, reason }) => [subscriptionId, reason]),
    [['sub_d', 'no d']],
  )
  assert.deepEqual(
    on.batches.map((batch) => batch.length).toSorted((a, b) => a - b),
    [1, 1, 2, 3, 5],
  )
})

test('the second half of a refused batch is not sent while the billing system fails', async (t) => {
  const { on, store, passes, dead } = await setUp(t, { names: ['a', 'b'] })
  on.respond = (events) => (events.length === 2 ? { kind: 'rejected', reason: 'one of them' } : UNKNOWN)
  await passes(1)
  assert.deepEqual([on.batches.length, (await dead()).length], [2, 0])
  const waiting = await store.billing.waiting('lago', 10)
  const inDoubt = waiting.filter(({ doubtSince }) => doubtSince !== null).map(({ subscriptionId }) => [subscriptionId])
  assert.deepEqual(inDoubt, [on.batches[1]], 'only of the half that was sent')
})

test('after a failure it waits, longer each time, and as long as the billing system asks', async (t) => {
  const { on, clock, pusher, passes } = await setUp(t)
  on.respond = () => UNKNOWN
  await passes()
  assert.deepEqual([on.batches.length, pusher.failing()], [1, 'HTTP 500'], 'not again at once')
  clock.advance(1000)
  await passes()
  assert.equal(on.batches.length, 2)
  clock.advance(999)
  await passes()
  assert.equal(on.batches.length, 2, 'the second delay is longer than the first')
  on.respond = () => ({ ...LIMITED, retryAfterMs: HOUR_MS }) as BatchResult
  clock.advance(1001)
  await passes()
  clock.advance(HOUR_MS - 1)
  await passes()
  assert.equal(on.batches.length, 3, 'not before Retry-After')
  on.respond = sent
  clock.advance(1)
  await passes()
  assert.deepEqual([on.batches.length, pusher.failing()], [4, undefined])
  assert.deepEqual({ ...pusher.counts }, { sent: 1, dead: 0, failures: 3 })
})

test('the second half of a refused batch waits, without doubt, where the first one took too long', async (t) => {
  const { on, store, clock, passes, dead } = await setUp(t, { names: ['a', 'b', 'c', 'd'] })
  on.respond = async (events) => {
    clock.advance(9_000)
    if (on.batches.length === 3) await store.billing.setPaused(CONTEXT, 'lago', true)
    return events.length > 1 ? { kind: 'rejected', reason: 'one of them' } : sent(events)
  }
  await passes(1)
  assert.deepEqual(
    on.batches.map((batch) => batch.length),
    [4, 2, 1],
    'each attempt gets to the result of an event',
  )
  const waiting = await store.billing.waiting('lago', 10)
  assert.deepEqual([waiting.map(({ doubtSince }) => doubtSince), await dead()], [[null, null, null], []])
})

test('customers without a billing id are named, 20 of them, until they have one', async (t) => {
  const names = Array.from({ length: 21 }, (_, n) => `c${String(n).padStart(2, '0')}`)
  const { on, store, pusher, passes } = await setUp(t, { kind: 'stripe', limits: STRIPE, names })
  await passes()
  assert.deepEqual(pusher.unmapped(), names.slice(0, 20))
  assert.equal(on.batches.length, 0)
  await store.billing.setBillingId(CONTEXT, 'cus_c00', 'cus_AtStripe')
  await passes()
  assert.ok(!pusher.unmapped().includes('c00'))
  assert.deepEqual(on.batches, [['sub_c00']])
})
