import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { addBilledCustomer, FROM_MS, HOUR_MS, usageOf } from '../../../test/support/admin/billing.ts'
import { CONTEXT, openSqliteStore } from '../../../test/support/store/engines.ts'
import type { BillingEvent } from '../../access/store/billing/tables.ts'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { createLanes } from './lanes.ts'
import { createPusher } from './pusher.ts'
import { beginBilling } from './service.ts'
import type { BatchResult } from './sink.ts'
import { createStripe } from './stripe.ts'

const NAMES = { units: 'sluice_units', calls: 'sluice_calls', bytes: 'sluice_bytes' }
const sent: BatchResult = { kind: 'settled', results: [{ kind: 'sent' }] }
const LIMITED: BatchResult = { kind: 'failed', reason: 'HTTP 429', isCounted: false }
const UNKNOWN: BatchResult = { kind: 'failed', reason: 'HTTP 500', isCounted: undefined }

/** Pushers `a` and `b` of one store, with the limits and lanes of Stripe, after so many hours of usage of each customer, the last of which are the same. */
async function setUp(t: TestContext, hoursOf: Readonly<Record<string, number>>) {
  const home = await openSqliteStore()
  t.after(() => home[Symbol.asyncDispose]())
  const { store } = home
  const clock = createManualClock(FROM_MS)
  const random = createSeededRandom(1)
  const hoursMax = Math.max(...Object.values(hoursOf))
  for (const [name, hours] of Object.entries(hoursOf)) {
    await addBilledCustomer(store, name)
    await store.billing.setBillingId(CONTEXT, `cus_${name}`, name)
    await store.addUsage(
      Array.from({ length: hours }, (_, hour) => usageOf(name, FROM_MS + (hoursMax - 1 - hour) * HOUR_MS, 5)),
      new Map(),
    )
  }
  await beginBilling(store.billing, 'stripe', { clock, random, fromMs: FROM_MS })
  clock.advance((hoursMax + 1) * HOUR_MS)
  const on = {
    ...{ store, clock },
    /** Who sent an event of whom. */
    requests: [] as string[],
    respond: (async () => sent) as (event: BillingEvent) => Promise<BatchResult>,
  }
  const stripe = createStripe({ url: 'http://127.0.0.1:9', key: undefined }, { names: NAMES }, { clock })
  t.after(() => stripe[Symbol.dispose]())
  const open = (owner: string) => {
    const sink: typeof stripe = {
      ...stripe,
      async send([event]) {
        assert.ok(event)
        on.requests.push(`${owner} ${event.subject}`)
        return on.respond(event)
      },
    }
    return createPusher(
      { sink: 'stripe', quantities: ['units'], settleMs: 300_000, subject: 'customer', fromMs: FROM_MS },
      { store, sink, clock, random, log: silentLogger, owner },
    )
  }
  const pusher = open('a')
  const waiting = async () => (await store.billing.summary('stripe')).waiting
  /** Makes all events and sends none. */
  const plan = async () => {
    const events = Object.values(hoursOf).reduce((sum, hours) => sum + hours, 0)
    on.respond = async () => LIMITED
    for (let passes = 0; passes < 100 && (await waiting()) < events; passes++) await pusher.pass()
    assert.equal(await waiting(), events)
    clock.advance(HOUR_MS)
    on.requests.length = 0
    on.respond = async () => sent
  }
  return { on, store, clock, pusher, other: open('b'), plan, waiting }
}

/** The numbers of requests by customer. */
function countsOf(requests: readonly string[]): Record<string, number> {
  const groups = Map.groupBy(requests, (request) => request.split(' ')[1] ?? '')
  return Object.fromEntries([...groups].map(([name, { length }]) => [name, length]))
}

test('of very many lanes that fail, the one that failed first is forgotten: it is tried like a working one', () => {
  const lanes = createLanes({ batchMax: 1, parallel: 1, laneOf: ({ eventKey }) => String(eventKey) })
  const eventOf = (n: number) => ({ eventKey: n }) as unknown as BillingEvent
  const record = (n: number) => lanes.record({ key: String(n), batches: [] }, true)
  for (let n = 0; n < 1000; n++) record(n)
  assert.equal(lanes.areEnough([eventOf(0)]), false)
  record(1000)
  assert.deepEqual([lanes.areEnough([eventOf(0)]), lanes.areEnough([eventOf(1)])], [true, false])
})

test('after an attempt with an unknown outcome nothing more is sent in its lane, and the next event is not in doubt', async (t) => {
  const { on, store, pusher, plan } = await setUp(t, { one: 2 })
  await plan()
  on.respond = async () => UNKNOWN
  await pusher.pass()
  assert.equal(on.requests.length, 1)
  const waiting = await store.billing.waiting('stripe', 10)
  assert.deepEqual(
    waiting.map(({ doubtSince }) => doubtSince === null),
    [false, true],
  )
})

test('a lane begins no request after 20 seconds, and the rest of it waits without doubt', async (t) => {
  const { on, store, clock, pusher, plan } = await setUp(t, { one: 8 })
  await plan()
  on.respond = async () => {
    clock.advance(9_999)
    if (on.requests.length === 3) await store.billing.setPaused(CONTEXT, 'stripe', true)
    return sent
  }
  await pusher.pass()
  assert.equal(on.requests.length, 3, 'at 0, 10 and 20 seconds')
  const waiting = await store.billing.waiting('stripe', 10)
  assert.deepEqual(
    waiting.map(({ doubtSince }) => doubtSince),
    [null, null, null, null, null],
  )
})

test('after a machine was suspended for 30 hours, events in doubt wait for an hour and are dead letters; others are sent meanwhile', async (t) => {
  const names = Array.from({ length: 8 }, (_, n) => `customer-${n}`)
  const hoursOf = { ...Object.fromEntries(names.map((name) => [name, 10])), other: 1 }
  const { on, store, clock, pusher, plan, waiting } = await setUp(t, hoursOf)
  await plan()
  const inDoubt = (await store.billing.waiting('stripe', 100)).filter(({ subject }) => subject !== 'other')
  const since = { state: 'pending', doubtSince: clock.nowMs(), reason: null } as const
  await store.billing.put(
    'stripe',
    'a',
    inDoubt.map(({ eventKey }) => ({ eventKey, ...since })),
  )
  // The monotonic clock stands still.
  clock.setWallMs(clock.nowMs() + 30 * HOUR_MS)
  for (let minutes = 0; minutes < 60; minutes++) {
    clock.advance(60_000)
    await pusher.pass()
  }
  assert.deepEqual([countsOf(on.requests), await waiting()], [{ other: 1 }, 80])
  clock.advance(60_000)
  await pusher.pass()
  const letters = await store.billing.dead('stripe', 100)
  assert.deepEqual([on.requests.length, letters.length], [1, 80])
  for (const { reason } of letters) assert.match(reason ?? '', /^outcome unknown/)
})

test('a machine that is suspended between two requests of a lane does not make the second one', async (t) => {
  const { on, store, clock, pusher, plan } = await setUp(t, { one: 2 })
  await plan()
  const inDoubt = (await store.billing.waiting('stripe', 10)).map(({ eventKey }) => {
    return { eventKey, state: 'pending', doubtSince: clock.nowMs(), reason: null } as const
  })
  await store.billing.put('stripe', 'a', inDoubt)
  on.respond = async () => {
    clock.setWallMs(clock.nowMs() + 30 * HOUR_MS)
    return sent
  }
  await pusher.pass()
  await pusher.pass()
  assert.equal(on.requests.length, 1, 'the other is in doubt for more than 23 hours by the wall clock')
})

test('the right to send is renewed within a pass: no other process sends, however slow the responses are', async (t) => {
  const { on, clock, pusher, other, plan } = await setUp(t, { one: 72 })
  await plan()
  // The longest groups: the last request begins before 20 s, and takes as long as one can. The first leaves little more than half of the lease.
  const latencies = [14_500, 14_500, 10_000, 9_900, 14_900]
  on.respond = async () => {
    clock.advance(latencies[(on.requests.length - 1) % latencies.length] ?? 0)
    if (on.requests.at(-1)?.startsWith('a')) await other.pass()
    return sent
  }
  for (let passes = 0; passes < 4; passes++) await pusher.pass()
  assert.deepEqual(
    [on.requests.length, on.requests.filter((request) => request.startsWith('b'))],
    [72, []],
    'in more than ten minutes',
  )
})

test('sending that is paused during a pass ends with the group that is under way', async (t) => {
  const { on, store, pusher, plan, waiting } = await setUp(t, { one: 30 })
  await plan()
  on.respond = async () => {
    await store.billing.setPaused(CONTEXT, 'stripe', true)
    return sent
  }
  await pusher.pass()
  assert.deepEqual([on.requests.length, await waiting()], [8, 22])
})

test('the oldest events do not decide for all: a group has events of as many customers as there are requests at the same time', async (t) => {
  const { on, pusher, plan } = await setUp(t, { a: 20, b: 1, c: 1, d: 1 })
  await plan()
  let active = 0
  let widest = 0
  on.respond = async () => {
    widest = Math.max(widest, ++active)
    await turn()
    active -= 1
    return sent
  }
  await pusher.pass()
  assert.deepEqual([widest, countsOf(on.requests)], [4, { a: 20, b: 1, c: 1, d: 1 }])
})

test('Stripe gets one request of a customer and meter at a time, and those of different customers at the same time', async (t) => {
  const { on, store, pusher, waiting } = await setUp(t, { one: 1, two: 1 })
  await store.addUsage([usageOf('one', FROM_MS, 7, 'ws'), usageOf('one', FROM_MS, 9, 'grpc')], new Map())
  const open = new Set<string>()
  let widest = 0
  on.respond = async ({ subject }) => {
    // Stripe responds so to a second call at the same time.
    if (open.has(subject)) return LIMITED
    open.add(subject)
    widest = Math.max(widest, open.size)
    await turn()
    open.delete(subject)
    return sent
  }
  for (let passes = 0; passes < 3; passes++) await pusher.pass()
  assert.deepEqual([on.requests.length, await waiting(), widest], [4, 0, 2])
})

test('customers whose events are refused for the moment do not keep others waiting, also with more events than a window has', async (t) => {
  const others = Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`customer-${n}`, 2]))
  const { on, clock, pusher, plan, waiting } = await setUp(t, { limited: 150, ...others })
  await plan()
  on.respond = async ({ subject }) => (subject === 'limited' ? LIMITED : sent)
  for (let passes = 0; passes < 3; passes++) {
    await pusher.pass()
    clock.advance(2000)
  }
  assert.equal(await waiting(), 150, 'all others are sent')
  assert.ok((countsOf(on.requests)['limited'] ?? 0) <= 3, 'it is tried once a pass, after the others')
  on.respond = async () => sent
  for (let passes = 0; passes < 3; passes++) {
    clock.advance(300_000)
    await pusher.pass()
  }
  assert.equal(await waiting(), 0)
})

test('pauses do not become longer while one customer is refused and another is sent', async (t) => {
  const { on, clock, pusher, plan, waiting } = await setUp(t, { limited: 40, other: 40 })
  await plan()
  on.respond = async ({ subject }) => (subject === 'limited' ? LIMITED : sent)
  for (let passes = 0; passes < 5; passes++) {
    await pusher.pass()
    clock.advance(1000)
  }
  assert.equal(await waiting(), 40)
})

test('eight customers that are refused for the moment do not keep a ninth waiting', async (t) => {
  const limited = Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`limited-${n}`, 3]))
  const { on, clock, pusher, plan } = await setUp(t, { ...limited, other: 1 })
  await plan()
  on.respond = async ({ subject }) => (subject === 'other' ? sent : LIMITED)
  for (let passes = 0; passes < 2; passes++) {
    await pusher.pass()
    clock.advance(2000)
  }
  assert.equal(countsOf(on.requests)['other'], 1)
})

test('while no response comes at all, the same events are repeated: no further ones are in doubt', async (t) => {
  const names = Array.from({ length: 20 }, (_, n) => `customer-${n}`)
  const { on, store, clock, pusher, plan } = await setUp(t, Object.fromEntries(names.map((name) => [name, 1])))
  await plan()
  on.respond = async () => UNKNOWN
  for (let passes = 0; passes < 5; passes++) {
    await pusher.pass()
    clock.advance(300_000)
  }
  const waiting = await store.billing.waiting('stripe', 100)
  assert.deepEqual([on.requests.length, waiting.filter(({ doubtSince }) => doubtSince !== null).length], [40, 8])
})
