import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { addBilledCustomer, FROM_MS, HOUR_MS, usageOf } from '../../../test/support/admin/billing.ts'
import { startTestSink, type TestSinkDeps } from '../../../test/support/admin/billing-sinks.ts'
import { openSqliteStore } from '../../../test/support/store/engines.ts'
import type { BillingStore } from '../../access/store/billing/store.ts'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { until } from '../../platform/process/test-wait.ts'
import { type Logger, silentLogger } from '../../platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../platform/telemetry/metrics-registry.ts'
import { billingOptions } from './options.ts'
import { type Billing, behindMs, startBilling } from './service.ts'

/** The service on a store with an hour of usage that can be sent. */
async function setUp(
  t: TestContext,
  fault: TestSinkDeps['fault'],
  lease?: (real: BillingStore) => BillingStore['lease'],
) {
  const home = await openSqliteStore()
  const clock = createManualClock(FROM_MS + 2 * HOUR_MS)
  const sink = await startTestSink('openmeter', { nowMs: clock.nowMs, fault })
  const registry = createMetricsRegistry()
  t.after(async () => {
    await sink[Symbol.asyncDispose]()
    await home[Symbol.asyncDispose]()
    registry[Symbol.dispose]()
  })
  const { store } = home
  await addBilledCustomer(store, 'one')
  await store.addUsage([usageOf('one', FROM_MS, 5)], new Map())
  const warned: unknown[] = []
  const log: Logger = { ...silentLogger, child: () => log, warn: (_fields: unknown, why) => void warned.push(why) }
  const billing = await startBilling(billingOptions.parse({ sink: 'openmeter', url: sink.url, from: '2027-01-10' }), {
    ...{ clock, registry, log, random: createSeededRandom(1), env: {} },
    store: { ...store, billing: { ...store.billing, ...(lease === undefined ? {} : { lease: lease(store.billing) }) } },
  })
  assert.ok(billing)
  const ownerNow = async () => (await store.billing.state('openmeter'))?.owner
  return { store, clock, sink, warned, registry, billing: billing as Billing, ownerNow }
}

test('closing gives the right to send back, so that another process need not wait for its end', async (t) => {
  const { clock, sink, billing, ownerNow } = await setUp(t, () => 'none')
  clock.advance(0)
  await until('the usage is sent', () => sink.sum() === 5 && billing.status().lastSuccessMs !== undefined)
  assert.ok(await ownerNow())
  await billing[Symbol.asyncDispose]()
  assert.equal(await ownerNow(), null)
  const requests = sink.requests()
  clock.advance(HOUR_MS)
  assert.equal(sink.requests(), requests, 'nothing is sent after it')
})

test('closing waits 2 s at most for a billing system that does not respond', async (t) => {
  const { clock, sink, billing, ownerNow } = await setUp(t, () => 'silent')
  clock.advance(0)
  await until('a request waits', () => sink.requests() === 1)
  const timers = clock.pendingTimers()
  const closing = billing[Symbol.asyncDispose]()
  await until('closing has begun', () => clock.pendingTimers() > timers)
  clock.advance(2000)
  await closing
  assert.equal(await ownerNow(), null)
})

test('a store that fails is tried again every 10 s, with one line in the log, and usage is sent afterwards', async (t) => {
  let attempts = 0
  const { clock, sink, warned, billing } = await setUp(
    t,
    () => 'none',
    (real) => async (name, given) => {
      attempts += 1
      if (attempts < 4) throw new Error('the disk is full')
      return real.lease(name, given)
    },
  )
  const due = clock.pendingTimers()
  for (const expected of [1, 2, 3]) {
    clock.advance(expected === 1 ? 0 : 1)
    await until('the next pass is due', () => attempts === expected && clock.pendingTimers() === due)
    clock.advance(9999)
    assert.equal(attempts, expected)
  }
  clock.advance(1)
  await until('the usage is sent', () => sink.sum() === 5)
  assert.deepEqual(warned, ['billing events wait for the store'])
  await billing[Symbol.asyncDispose]()
})

test('how far billing is behind is reported also while each pass fails, and grows', async (t) => {
  let attempts = 0
  const { clock, registry, billing } = await setUp(
    t,
    () => 'none',
    () => async () => {
      attempts += 1
      throw new Error('the disk is full')
    },
  )
  const behind = async () => Number(/^sluice_billing_behind_seconds (\S+)/m.exec(await registry.text())?.[1])
  const due = clock.pendingTimers()
  clock.advance(0)
  await until('the next pass is due', () => attempts === 1 && clock.pendingTimers() === due)
  const before = await behind()
  assert.ok(before > 0, `${before} s`)
  clock.advance(5000)
  assert.equal(await behind(), before + 5)
  await billing[Symbol.asyncDispose]()
})

test('without a billing system nothing is started; how far it is behind counts from the oldest hour that could be sent', async () => {
  assert.equal(await startBilling(billingOptions.parse({}), {} as never), undefined)
  const state = {
    ...{ sink: 'lago', storeId: 's', fromHour: 0, paused: false, owner: null, leaseUntil: 0 },
    plannedHour: FROM_MS + 9 * HOUR_MS,
  }
  const none = { waiting: 0, dead: 0, oldestWaitingHour: null, oldestMarkedHour: null }
  const now = { nowMs: FROM_MS + 12 * HOUR_MS, settleMs: 300_000 }
  assert.equal(behindMs(none, undefined, now), 0)
  assert.equal(behindMs(none, state, now), HOUR_MS - 300_000, 'the hour after the last that was planned')
  assert.equal(behindMs({ ...none, oldestWaitingHour: FROM_MS }, state, now), 11 * HOUR_MS - 300_000)
  assert.equal(behindMs({ ...none, oldestMarkedHour: FROM_MS + HOUR_MS }, state, now), 10 * HOUR_MS - 300_000)
  assert.equal(behindMs(none, state, { ...now, nowMs: FROM_MS }), 0)
})

test('a key that is sent without encryption to another machine is a warning', async (t) => {
  const home = await openSqliteStore()
  t.after(() => home[Symbol.asyncDispose]())
  const linesWith = async (url: string) => {
    using registry = createMetricsRegistry()
    const warned: unknown[] = []
    const log: Logger = { ...silentLogger, child: () => log, warn: (_fields: unknown, why) => void warned.push(why) }
    const billing = await startBilling(billingOptions.parse({ sink: 'openmeter', url, key: 'env:KEY' }), {
      ...{ clock: createManualClock(FROM_MS), registry, log, random: createSeededRandom(1), env: { KEY: 'k' } },
      store: home.store,
    })
    await billing?.[Symbol.asyncDispose]()
    return warned.join()
  }
  assert.match(await linesWith('http://lago.example.net:3000'), /key .* without encryption/)
  for (const url of ['https://lago.example.net', 'http://127.0.0.1:3000', 'http://localhost'])
    assert.equal(await linesWith(url), '', url)
})
