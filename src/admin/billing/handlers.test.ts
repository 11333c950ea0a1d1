import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { addBilledCustomer, FROM_MS, HOUR_MS, openTestPusher, usageOf } from '../../../test/support/admin/billing.ts'
import { startTestSink } from '../../../test/support/admin/billing-sinks.ts'
import { startTestAdmin } from '../../../test/support/admin/start.ts'
import { ENGINES, type Engines, openSqliteStore, startEngines } from '../../../test/support/store/engines.ts'
import type { AccessStore } from '../../access/store/store.ts'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { until } from '../../platform/process/test-wait.ts'
import { LINES_STALL_MS } from '../api/send-lines.ts'
import { type BillingHandlerDeps, billingHandlers, EXPORTS_MAX } from './handlers.ts'
import { beginBilling } from './service.ts'

let engines: Engines
before(async () => {
  engines = await startEngines()
})
after(() => engines[Symbol.asyncDispose]())

const PRICES = { build: { currency: 'EUR', decimals: 2, perMonth: '31', perMillionUnits: '0.5', perGigabyte: '0' } }
const handlersOf = (store: AccessStore, more: Pick<BillingHandlerDeps, 'sending'> = {}) =>
  billingHandlers({ store, sink: 'lago', settleMs: 300_000, prices: PRICES, ...more })
const EXPORT = '/v1/usage/export?month=2027-01'
/** A call of a handler without a request. */
const CALL = {
  ...{ params: {}, query: new URLSearchParams('month=2027-01'), body: undefined },
  ...{ actor: { uid: 1, user: 'op', sudoUser: null, tty: null }, nowMs: 0, isDryRun: false },
  ...{ ifRevision: undefined, signal: new AbortController().signal },
}
const messageOf = async (response: Response) =>
  ((await response.json()) as { error: { message: string } }).error.message

for (const engine of ENGINES)
  describe(`the billing routes on ${engine}`, () => {
    test('usageExport has the sums of the ledger in both formats, and refuses what it does not know', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      for (const name of ['one', 'two']) await addBilledCustomer(store, name)
      for (let hour = 0; hour < 30; hour++)
        await store.addUsage(
          [usageOf('one', FROM_MS + hour * HOUR_MS, hour + 1), usageOf('two', FROM_MS + hour * HOUR_MS, 7, 'ws')],
          new Map(),
        )
      await using admin = await startTestAdmin(store, { handlers: handlersOf(store) })
      const { secret } = await admin.add('bill', 'billing')
      const ledger = (await store.usage({})).reduce((sum, { units }) => sum + units, 0)

      const csv = await admin.call('GET', EXPORT, secret)
      assert.equal(csv.headers.get('content-type'), 'text/csv; charset=utf-8')
      assert.equal(csv.headers.get('cache-control'), 'no-store')
      const [header, ...lines] = (await csv.text()).trim().split('\n')
      assert.match(header ?? '', /^customer,customer_id,.*,units,refused,bytes$/)
      assert.equal(
        lines.reduce((sum, line) => sum + Number(line.split(',')[8]), 0),
        ledger,
      )
      const json = await admin.call('GET', `${EXPORT}&format=jsonl&by=interface&customer=two`, secret)
      assert.equal(json.headers.get('content-type'), 'application/x-ndjson')
      const rows = (await json.text()).trim().split('\n')
      assert.deepEqual(
        rows.map((row) => (JSON.parse(row) as { units: number; interface: string }).units),
        [210],
      )
      const head = await admin.call('HEAD', EXPORT, secret)
      assert.deepEqual([head.status, await head.text()], [200, ''])
      for (const [query, status, message] of [
        ['?month=2027-13', 400, /month/],
        ['', 400, /month/],
        ['?month=2027-01&by=week', 400, /by is "week": give one of day, method, interface/],
        ['?month=2027-01&customer=tow', 404, /did you mean "two"/],
        ['?month=2027-01&format=xml', 400, /format/],
      ] as const) {
        const refused = await admin.call('GET', `/v1/usage/export${query}`, secret)
        assert.equal(refused.status, status, query)
        assert.match(await messageOf(refused), message)
      }
      const reader = await admin.add('reads', 'read-only')
      assert.equal((await admin.call('GET', EXPORT, reader.secret)).status, 403)
    })

    test('invoicePreview has the lines and sums of a month, of all customers or of one', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      for (const name of ['one', 'two']) await addBilledCustomer(store, name)
      await store.addUsage([usageOf('one', FROM_MS, 3_000_000)], new Map())
      await using admin = await startTestAdmin(store, { handlers: handlersOf(store) })
      const { secret } = await admin.add('bill', 'billing')
      const preview = async (query: string) =>
        (await (await admin.call('GET', `/v1/invoices/preview?month=2027-01${query}`, secret)).json()) as object
      const two = { customer: 'two', subscription: 'two', plan: 'build', days: 22, days_of_month: 31, units: 0 }
      assert.partialDeepStrictEqual(await preview(''), {
        lines: [
          { customer: 'one', units: 3_000_000, base: '22.00', usage: '1.50', amount: '23.50', currency: 'EUR' },
          { ...two, base: '22.00', usage: '0.00', amount: '22.00' },
        ],
        totals: [{ currency: 'EUR', amount: '45.50' }],
        without_price: 0,
        is_preview: true,
      })
      assert.partialDeepStrictEqual(await preview('&customer=two'), { lines: [two], totals: [{ amount: '22.00' }] })
      const refused = await admin.call('GET', '/v1/invoices/preview?month=2027-1', secret)
      assert.equal(refused.status, 400)
      assert.match(await messageOf(refused), /month/)
      const reader = await admin.add('reads', 'read-only')
      assert.equal((await admin.call('GET', '/v1/invoices/preview?month=2027-01', reader.secret)).status, 403)
    })

    test('billingStatus is what the store has: state, what waits, dead letters', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      await addBilledCustomer(store, 'one')
      const clock = createManualClock(FROM_MS)
      await using sink = await startTestSink('lago', {
        nowMs: clock.nowMs,
        fault: () => 'none',
        refuse: () => 'no plan',
      })
      await using admin = await startTestAdmin(store, { handlers: handlersOf(store), clock })
      const { secret } = await admin.add('bill', 'billing')
      const status = async () => (await (await admin.call('GET', '/v1/billing', secret)).json()) as object
      assert.partialDeepStrictEqual(await status(), { sink: 'lago', state: 'idle', planned_until: null, waiting: 0 })
      using pusher = await openTestPusher('lago', { store, clock, owner: 'a', url: sink.url })
      await store.addUsage([usageOf('one', FROM_MS, 5)], new Map())
      clock.advance(2 * HOUR_MS)
      for (let passes = 0; passes < 3; passes++) await pusher.pass()
      assert.partialDeepStrictEqual(await status(), {
        state: 'sending',
        planned_until: new Date(FROM_MS + HOUR_MS).toISOString(),
        waiting: 0,
        behind_seconds: 0,
        dead_letters: 1,
        dead: [
          { subscription: 'sub_one', subscription_name: 'one', amount: 5, quantity: 'units', outcome_unknown: false },
        ],
      })

      const change = async (method: string, path: string, body?: object) =>
        (await (await admin.call(method, path, secret, { body })).json()) as object
      assert.deepEqual(await change('POST', '/v1/billing/pause'), { sink: 'lago', paused: true })
      assert.partialDeepStrictEqual(await status(), { state: 'paused', dead_letters: 1 })
      const dryRun = await change('POST', '/v1/billing/retry?dry_run=true')
      assert.deepEqual(dryRun, { sink: 'lago', changed: 0, unknown: 0 })
      assert.deepEqual(await change('POST', '/v1/billing/retry', {}), { sink: 'lago', changed: 1, unknown: 0 })
      assert.deepEqual(await change('POST', '/v1/billing/resume', { sink: 'lago' }), { sink: 'lago', paused: false })
      assert.partialDeepStrictEqual(await status(), { state: 'sending', dead_letters: 0, waiting: 1 })

      const id = (billing_id: string | null) => change('PUT', '/v1/customers/one/billing-id', { billing_id })
      assert.deepEqual(await id('C-7'), { customer: 'one', customer_id: 'cus_one', billing_id: 'C-7' })
      assert.equal((await store.billing.billingIds(['cus_one'])).get('cus_one'), 'C-7')
      await id(null)
      assert.equal((await store.billing.billingIds(['cus_one'])).size, 0)
      assert.partialDeepStrictEqual(await id('two words'), { error: { code: 'invalid-value' } })
      const etag = async () => `"${(await store.get('customers', 'cus_one'))?.revision}"`
      const seen = { 'if-match': await etag() }
      const put = (billing_id: string) =>
        admin.call('PUT', '/v1/customers/one/billing-id', secret, { body: { billing_id }, headers: seen })
      const first = await put('C-8')
      assert.deepEqual([first.status, (await put('C-9')).status], [200, 412])
      assert.equal((await store.billing.billingIds(['cus_one'])).get('cus_one'), 'C-8')
      assert.equal(first.headers.get('etag'), await etag())
      assert.partialDeepStrictEqual(await change('POST', '/v1/billing/pause', { sink: 'mail' }), {
        error: { code: 'invalid-value', message: '"mail" is not a billing system: use one of openmeter, lago, stripe' },
      })
      const actions = (await Array.fromAsync(store.auditLines(1))).map(
        (line) => JSON.parse(line) as { action: string; actor: { admin?: { name: string } } },
      )
      assert.deepEqual(
        actions
          .filter(({ action }) => /^billing|billing-id/.test(action))
          .map(({ action, actor }) => [action, actor.admin?.name]),
        [
          'billing.pause',
          'billing.retry',
          'billing.resume',
          ...Array.from({ length: 3 }, () => 'customer.billing-id'),
        ].map((action) => [action, 'bill']),
      )
    })
  })

test('billingStatus has what the sending process knows: the last success, why it fails, who has no billing id', async () => {
  await using bench = await engines.bench('sqlite')
  await using store = await bench.open()
  await addBilledCustomer(store, 'one')
  const clock = createManualClock(FROM_MS)
  let fault: 'none' | 'refuses' = 'none'
  await using sink = await startTestSink('lago', {
    nowMs: clock.nowMs,
    fault: () => 'none',
    refuse: () => (fault === 'none' ? undefined : 'no plan'),
  })
  using pusher = await openTestPusher('lago', { store, clock, owner: 'a', url: sink.url })
  const sending = () => ({
    failing: pusher.failing(),
    lastSuccessMs: pusher.lastSuccessMs(),
    unmapped: ['acme'],
  })
  await using admin = await startTestAdmin(store, { handlers: handlersOf(store, { sending }), clock })
  const { secret } = await admin.add('bill', 'billing')
  const status = async () => (await (await admin.call('GET', '/v1/billing', secret)).json()) as object
  const none = { last_success_at: null, failing: null, customers_without_billing_id: ['acme'] }
  assert.partialDeepStrictEqual(await status(), none)
  const passes = async (): Promise<string> => {
    await store.addUsage([usageOf('one', Math.floor(clock.nowMs() / HOUR_MS) * HOUR_MS, 5)], new Map())
    clock.advance(2 * HOUR_MS)
    for (let pass = 0; pass < 4; pass++) await pusher.pass()
    return new Date(clock.nowMs()).toISOString()
  }
  const at = await passes()
  assert.partialDeepStrictEqual(await status(), { ...none, last_success_at: at, dead_letters: 0 })
  fault = 'refuses'
  await passes()
  // What is refused is no success.
  assert.partialDeepStrictEqual(await status(), { last_success_at: at, dead_letters: 1 })
})

test('without a billing system billingStatus names none', async () => {
  await using bench = await engines.bench('sqlite')
  await using store = await bench.open()
  const handlers = billingHandlers({ store, sink: undefined, settleMs: 300_000, prices: {} })
  await using admin = await startTestAdmin(store, { handlers })
  const { secret } = await admin.add('bill', 'billing')
  assert.deepEqual(await (await admin.call('GET', '/v1/billing', secret)).json(), { sink: null })
  for (const verb of ['retry', 'pause', 'resume']) {
    const refused = await admin.call('POST', `/v1/billing/${verb}`, secret)
    assert.equal(refused.status, 400)
    assert.equal(await messageOf(refused), 'no billing system is configured')
    assert.equal((await admin.call('POST', `/v1/billing/${verb}?dry_run=true`, secret)).status, 200)
  }
})

test('a dry run of a change checks it and changes nothing', async () => {
  await using home = await openSqliteStore()
  const { store } = home
  await addBilledCustomer(store, 'one')
  const clock = createManualClock(FROM_MS)
  await beginBilling(store.billing, 'lago', { clock, random: createSeededRandom(1), fromMs: FROM_MS })
  const handlers = handlersOf(store)
  const run = (id: 'billingPause' | 'customerBillingId', isDryRun: boolean, body: object) =>
    handlers[id]({ ...CALL, params: { customer: 'one' }, body, isDryRun })
  const stateOf = async () => [
    (await store.billing.state('lago'))?.paused,
    (await store.billing.billingIds(['cus_one'])).get('cus_one'),
  ]
  const revision = await store.revision()
  await run('billingPause', true, {})
  await run('customerBillingId', true, { billing_id: 'C-7' })
  assert.deepEqual([await stateOf(), await store.revision()], [[false, undefined], revision])
  await run('billingPause', false, {})
  await run('customerBillingId', false, { billing_id: 'x'.repeat(200) })
  assert.deepEqual(await stateOf(), [true, 'x'.repeat(200)])
  for (const billing_id of ['x'.repeat(201), 'tab\there', 'ünique'])
    await assert.rejects(run('customerBillingId', true, { billing_id }), { code: 'invalid-value' })
})

describe('an export over the API to a client that does not read', () => {
  /** More than the buffers of a connection hold. */
  const LINES = 400_000
  async function rig() {
    const bench = await engines.bench('sqlite')
    const store = await bench.open()
    const clock = createManualClock(systemClock.nowMs())
    const handlers = handlersOf(store)
    let made = 0
    async function* endless(): AsyncGenerator<string> {
      for (; made < LINES; made++) yield `${'x'.repeat(99)}\n`
    }
    const admin = await startTestAdmin(store, {
      clock,
      handlers: { usageExport: async () => ({ body: '', lines: endless(), contentType: 'text/csv' }) },
    })
    const { secret } = await admin.add('bill', 'billing')
    return {
      ...{ store, admin, secret, clock, handlers },
      made: () => made,
      async [Symbol.asyncDispose]() {
        await admin[Symbol.asyncDispose]()
        await store[Symbol.asyncDispose]()
        await bench[Symbol.asyncDispose]()
      },
    }
  }

  test('makes no lines ahead of it, and ends after a time', async () => {
    await using on = await rig()
    const timers = on.clock.pendingTimers()
    const request = httpRequest(`${on.admin.url}${EXPORT}`, { headers: { authorization: `Bearer ${on.secret}` } })
    request.end()
    const [response] = (await once(request, 'response')) as [NodeJS.ReadableStream]
    response.pause()
    const closed = once(response, 'close').catch(() => [])
    // The time limit of a client that reads nothing is the only timer that a response starts.
    await until('the response waits for its reader', () => on.clock.pendingTimers() > timers)
    assert.ok(on.made() < LINES, `${on.made()} lines were made although nobody reads`)
    on.clock.advance(LINES_STALL_MS)
    response.on('error', () => {})
    response.resume()
    await closed
    assert.ok(on.made() < LINES, 'the export has ended')
  })

  test('a limited number of exports runs at the same time, and a closed connection frees its place', async () => {
    await using on = await rig()
    const start = async () => {
      const { lines } = await on.handlers.usageExport(CALL)
      assert.ok(lines)
      const reading = lines[Symbol.asyncIterator]()
      await reading.next()
      return reading
    }
    const open = await Promise.all(Array.from({ length: EXPORTS_MAX }, start))
    await assert.rejects(start(), /4 exports are under way/)
    await open[0]?.return?.()
    await start()
  })
})
