import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { addBilledCustomer, FROM_MS, HOUR_MS, openTestPusher, usageOf } from '../../../test/support/admin/billing.ts'
import { startTestSink } from '../../../test/support/admin/billing-sinks.ts'
import { CONTEXT, ENGINES, startEngines } from '../../../test/support/store/engines.ts'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { beginBilling } from './service.ts'
import { readBillingStatus } from './status.ts'

/** An id that changed would be a second count at the billing system. */
const PINNED_ID = '2336a122dbe25a81da0f8e139f774db6b3e6deef4c6f0e6b29c7b61727cd921c'
const PINNED_BYTES_ID = '95f37000ee7850d4e29f3d4a626dd1bcd5f3f10674714e4e33f912f0b563e9d9'

const engines = await startEngines()
after(() => engines[Symbol.asyncDispose]())

for (const engine of ENGINES)
  describe(`billing events on ${engine}`, () => {
    test('an hour is sent once it is settled, late usage as a further part, by one process at a time', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      await addBilledCustomer(store, 'one')
      const clock = createManualClock(FROM_MS)
      await using sink = await startTestSink('openmeter', { nowMs: clock.nowMs, fault: () => 'none' })
      using pusher = await openTestPusher('openmeter', { store, clock, owner: 'a', url: sink.url })
      using second = await openTestPusher('openmeter', { store, clock, owner: 'b', url: sink.url })
      await store.addUsage([usageOf('one', FROM_MS, 70)], new Map())
      clock.advance(HOUR_MS + 299_000)
      await pusher.pass()
      assert.equal(sink.sum(), 0, 'not settled')
      clock.advance(2000)
      await second.pass()
      assert.equal(sink.sum(), 0, 'the other process has the lease')
      await pusher.pass()
      assert.deepEqual(
        sink.counted.map(({ subject, name, value }) => [subject, name, value]),
        [['cus_one', 'sluice_units', 70]],
      )
      assert.equal(sink.headers()['authorization'], 'Bearer the-key-of-the-sink')
      await store.addUsage([usageOf('one', FROM_MS, 5)], new Map())
      await pusher.pass()
      assert.deepEqual(
        sink.counted.map(({ value }) => value),
        [70, 5],
      )
      assert.deepEqual(await store.integrity(), [])
      clock.advance(120_000)
      await second.pass()
      assert.equal((await store.billing.state('openmeter'))?.owner, 'b', 'the lease of a silent process ends')
    })

    test('bytes are a quantity of their own, sent only where they are configured; the ids of units never change', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      await addBilledCustomer(store, 'one')
      const clock = createManualClock(FROM_MS)
      await using sink = await startTestSink('openmeter', { nowMs: clock.nowMs, fault: () => 'none' })
      // With the id of the store given, so that the ids of its events are known.
      const state = { sink: 'openmeter', storeId: '01JGF000000000000000000000', fromHour: FROM_MS, paused: false }
      await store.billing.begin({ ...state, plannedHour: FROM_MS - HOUR_MS, owner: null, leaseUntil: 0 })
      await store.addUsage([usageOf('one', FROM_MS, 70, 'rpc', 5000)], new Map())
      clock.advance(2 * HOUR_MS)
      const sent = () => sink.counted.map(({ id, name, value }) => [id.split(' ').at(-1), name, value])
      const units = [PINNED_ID, 'sluice_units', 70]
      {
        using pusher = await openTestPusher('openmeter', { store, clock, owner: 'a', url: sink.url })
        for (let passes = 0; passes < 3; passes++) await pusher.pass()
        assert.deepEqual(sent(), [units])
      }
      const quantities: ('units' | 'bytes')[] = ['units', 'bytes']
      using pusher = await openTestPusher('openmeter', { store, clock, owner: 'a', url: sink.url, quantities })
      for (let passes = 0; passes < 10; passes++) await pusher.pass()
      assert.deepEqual(
        sent(),
        [units, [PINNED_BYTES_ID, 'sluice_bytes', 5000]],
        'the hours before it was configured too',
      )
      await store.addUsage([usageOf('one', FROM_MS, 0, 'rpc', 11)], new Map())
      for (let passes = 0; passes < 10; passes++) await pusher.pass()
      assert.deepEqual(
        sink.counted.slice(2).map(({ name, value }) => [name, value]),
        [['sluice_bytes', 11]],
      )
    })

    test('the mark of an hour stays when usage was added to it since it was read', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      await addBilledCustomer(store, 'one')
      const { billing } = store
      const clock = createManualClock(FROM_MS)
      await beginBilling(billing, 'lago', { clock, random: createSeededRandom(1), fromMs: FROM_MS })
      await billing.openHour('lago', FROM_MS)
      const marked = await billing.markedHour('lago')
      assert.ok(marked)
      await store.addUsage([usageOf('one', FROM_MS, 5)], new Map())
      await billing.unmarkHour('lago', marked)
      const again = await billing.markedHour('lago')
      assert.deepEqual(again, { hour: FROM_MS, marks: marked.marks + 1 })
      await billing.unmarkHour('lago', again)
      assert.equal(await billing.markedHour('lago'), undefined)
    })

    test('a refused event is a dead letter, and a retry sends it with the same id', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      for (const name of ['one', 'two']) await addBilledCustomer(store, name)
      const clock = createManualClock(FROM_MS)
      let isRefusing = true
      const refuse = ({ subject }: { subject: string }) =>
        isRefusing && subject === 'sub_two' ? 'no such subscription' : undefined
      await using sink = await startTestSink('lago', { nowMs: clock.nowMs, fault: () => 'none', refuse })
      using pusher = await openTestPusher('lago', { store, clock, owner: 'a', url: sink.url })
      await store.addUsage([usageOf('one', FROM_MS, 1), usageOf('two', FROM_MS, 2)], new Map())
      clock.advance(2 * HOUR_MS)
      for (let passes = 0; passes < 3; passes++) await pusher.pass()
      assert.equal(sink.sum(), 1)
      const status = await readBillingStatus(store, { sink: 'lago', settleMs: 300_000, nowMs: clock.nowMs() })
      assert.equal(status.deadLetters, 1)
      assert.match(status.dead[0]?.reason ?? '', /no such subscription/)
      isRefusing = false
      const which = { isUnknownIncluded: false, isMarkedSent: false }
      const id = status.dead[0]?.id ?? ''
      const named = (...ids: string[]) => store.billing.retry(CONTEXT, 'lago', { ...which, ids })
      await assert.rejects(named(id, 'nothing'), { code: 'not-found', message: /no billing event lago\/nothing/ })
      await assert.rejects(named(id, sink.counted[0]?.id ?? ''), {
        code: 'wrong-state',
        message: /is sent, not a dead/,
      })
      assert.equal((await store.billing.summary('lago')).dead, 1, 'a refused retry changes nothing')
      assert.deepEqual(await named(id, id), { changed: 1, unknown: 0 })
      await pusher.pass()
      assert.equal(sink.sum(), 3)
      assert.equal(sink.counted[1]?.id, status.dead[0]?.id)
    })

    test('every hour of a customer is looked at again when its billing id is set', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      await addBilledCustomer(store, 'one')
      await addBilledCustomer(store, 'two')
      const random = createSeededRandom(1)
      const { billing } = store
      await beginBilling(billing, 'stripe', { clock: createManualClock(FROM_MS), random, fromMs: FROM_MS })
      const hours = [0, 29, 30, 31, 45].map((day) => FROM_MS + day * 24 * HOUR_MS)
      const isPlanned = (hour: number) => hour < (hours.at(-1) as number)
      await store.addUsage(
        [usageOf('two', FROM_MS + HOUR_MS, 1), ...hours.map((hour) => usageOf('one', hour, 9))],
        new Map(),
      )
      for (const hour of hours.filter(isPlanned)) await billing.openHour('stripe', hour)
      const takeMarked = async () => {
        const taken: number[] = []
        for (let next = await billing.markedHour('stripe'); next; next = await billing.markedHour('stripe')) {
          taken.push(next.hour)
          await billing.unmarkHour('stripe', next)
        }
        return taken
      }
      await takeMarked()
      await billing.setBillingId(CONTEXT, 'cus_one', 'cus_AtStripe')
      assert.deepEqual(await takeMarked(), hours.filter(isPlanned))
    })

    test('Stripe after one HTTP 500: the next attempt is a request of its own, and succeeds', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      await addBilledCustomer(store, 'one')
      await store.billing.setBillingId(CONTEXT, 'cus_one', 'cus_AtStripe')
      const clock = createManualClock(FROM_MS)
      const fault = (request: number) => (request === 0 ? 'error' : 'none')
      await using sink = await startTestSink('stripe', { nowMs: clock.nowMs, fault })
      using pusher = await openTestPusher('stripe', { store, clock, owner: 'a', url: sink.url })
      await store.addUsage([usageOf('one', FROM_MS, 9)], new Map())
      clock.advance(2 * HOUR_MS)
      await pusher.pass()
      assert.deepEqual([sink.requests(), sink.sum()], [1, 0])
      clock.advance(60_000)
      await pusher.pass()
      assert.equal(sink.sum(), 9)
      assert.equal((await store.billing.summary('stripe')).waiting, 0)
    })

    test('Stripe after more than a day without a response: a dead letter, not a second count', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      await addBilledCustomer(store, 'one')
      const clock = createManualClock(FROM_MS)
      let fault: 'error-counted' | 'none' = 'error-counted'
      await using sink = await startTestSink('stripe', { nowMs: clock.nowMs, fault: () => fault })
      using pusher = await openTestPusher('stripe', { store, clock, owner: 'a', url: sink.url })
      await store.addUsage([usageOf('one', FROM_MS, 9)], new Map())
      clock.advance(2 * HOUR_MS)
      await pusher.pass()
      assert.deepEqual(pusher.unmapped(), ['one'], 'usage waits for the billing id')
      assert.equal(sink.requests(), 0)
      await store.billing.setBillingId(CONTEXT, 'cus_one', 'cus_AtStripe')
      await pusher.pass()
      assert.equal(sink.sum(), 9)
      fault = 'none'
      clock.advance(25 * HOUR_MS)
      await pusher.pass()
      assert.equal(sink.sum(), 9, 'not counted twice')
      const which = { isUnknownIncluded: false, isMarkedSent: false }
      assert.deepEqual(await store.billing.retry(CONTEXT, 'stripe', which), { changed: 0, unknown: 1 })
      const [letter] = await store.billing.dead('stripe', 10)
      assert.match(letter?.reason ?? '', /^outcome unknown/)
      await store.billing.retry(CONTEXT, 'stripe', { isUnknownIncluded: false, isMarkedSent: true })
      assert.equal((await store.billing.summary('stripe')).dead, 0)
    })
  })
