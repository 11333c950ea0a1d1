import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { usageOf } from '../../../test/support/admin/billing.ts'
import {
  CONTEXT,
  customer,
  ENGINES,
  type Engines,
  STORE_DEPS,
  startEngines,
} from '../../../test/support/store/engines.ts'
import { removeCustomer } from '../../access/provisioning/customers.ts'
import { cancelSubscription } from '../../access/provisioning/subscriptions.ts'
import type { Subscription } from '../../access/store/model.ts'
import type { AccessStore } from '../../access/store/store.ts'
import { parseMonth } from '../../contract/dates.ts'
import { previewInvoice } from './invoice.ts'
import { billingOptions, type PlanPrices } from './options.ts'

let engines: Engines
before(async () => {
  engines = await startEngines()
})
after(() => engines[Symbol.asyncDispose]())

const at = (text: string) => Date.parse(`${text}Z`)
const OCTOBER = parseMonth('2026-10')
const PRICES: PlanPrices = {
  build: { currency: 'EUR', decimals: 2, perMonth: '49.90', perMillionUnits: '0.25', perGigabyte: '0' },
  grow: { currency: 'JPY', decimals: 0, perMonth: '10000', perMillionUnits: '33', perGigabyte: '0' },
}

async function add(store: AccessStore, name: string, given: Partial<Subscription> = {}): Promise<void> {
  await store.change(CONTEXT, async (tx) => {
    await tx.put('customers', customer(name))
    await tx.put('subscriptions', {
      ...{ id: `sub_${name}`, customerId: `cus_${name}`, name, plan: 'build', products: ['bundle'], overrides: {} },
      ...{ state: 'active', createdAt: at('2026-01-01T00:00'), validUntil: null },
      ...given,
    })
    return { audit: { action: 'test.put', subjects: [] }, result: undefined }
  })
}

for (const engine of ENGINES)
  describe(`an invoice preview on ${engine}`, () => {
    test('the price of a month is shared by the days on which a subscription is valid', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      const on = { ...CONTEXT, store, random: STORE_DEPS.random }
      await add(store, 'a-whole')
      await add(store, 'b-begun', { createdAt: at('2026-10-31T23:59') })
      await add(store, 'c-ended', { validUntil: at('2026-10-11T00:00') })
      await add(store, 'd-suspended', { state: 'suspended' })
      await add(store, 'e-cancelled')
      await cancelSubscription({ ...on, nowMs: at('2026-10-05T12:00') }, { subscription: 'e-cancelled' })
      await add(store, 'f-removed')
      await removeCustomer({ ...on, nowMs: at('2026-10-01T00:01') }, { customer: 'f-removed', force: true })
      await add(store, 'g-later', { createdAt: at('2026-11-01T00:00') })
      await add(store, 'h-over', { validUntil: at('2026-10-01T00:00') })
      const { lines, totals, withoutPrice } = await previewInvoice(store, PRICES, OCTOBER)
      assert.deepEqual(
        lines.map(({ subscription, days, base }) => [subscription, days, base]),
        [
          ['a-whole', 31, '49.90'],
          ['b-begun', 1, '1.61'],
          ['c-ended', 10, '16.10'],
          ['d-suspended', 31, '49.90'],
          ['e-cancelled', 5, '8.05'],
          ['f-removed', 1, '1.61'],
        ],
      )
      assert.deepEqual(totals, [{ currency: 'EUR', amount: '127.17' }])
      assert.equal(withoutPrice, 0)
    })

    test('the audit log is read once, however many subscriptions were cancelled', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      const on = { ...CONTEXT, store, random: STORE_DEPS.random }
      let reads = 0
      const counting: AccessStore = {
        ...store,
        auditPage(request) {
          reads += 1
          return store.auditPage(request)
        },
      }
      const preview = async () => {
        reads = 0
        return (await previewInvoice(counting, PRICES, OCTOBER)).lines.map(({ subscription, days }) => [
          subscription,
          days,
        ])
      }
      await add(store, 'a-open')
      await add(store, 'b-ended', { state: 'cancelled', validUntil: at('2026-09-01T00:00') })
      assert.deepEqual([await preview(), reads], [[['a-open', 31]], 0], 'no cancelled one was valid in the month')
      const many = Array.from({ length: 60 }, (_, n) => `c-${String(n).padStart(2, '0')}`)
      for (const name of many) {
        await add(store, name)
        await cancelSubscription({ ...on, nowMs: at('2026-10-02T12:00') }, { subscription: name })
      }
      await add(store, 'd-before')
      await cancelSubscription({ ...on, nowMs: at('2026-09-30T23:59') }, { subscription: 'd-before' })
      await add(store, 'e-after')
      await cancelSubscription({ ...on, nowMs: at('2026-11-01T00:00') }, { subscription: 'e-after' })
      const lines = [['a-open', 31], ...many.map((name) => [name, 2]), ['e-after', 31]]
      assert.deepEqual([await preview(), reads], [lines, 1])
    })

    test('units are those of the month, sums are by currency, and a plan without a price is counted', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      await add(store, 'one')
      await add(store, 'two', { plan: 'grow' })
      await add(store, 'three', { plan: 'starter' })
      // A name of a plan, and of a property that every object inherits.
      await add(store, 'four', { plan: 'constructor' })
      await add(store, 'ended', { validUntil: at('2026-09-01T00:00') })
      await store.addUsage(
        [
          usageOf('one', at('2026-09-30T23:00'), 4_000_000),
          usageOf('one', at('2026-10-01T00:00'), 1_000_000),
          usageOf('one', at('2026-10-31T23:00'), 1_020_000, 'ws'),
          usageOf('one', at('2026-11-01T00:00'), 8_000_000),
          usageOf('two', at('2026-10-15T00:00'), 500_000),
          usageOf('ended', at('2026-10-15T00:00'), -2_000_000),
        ],
        new Map(),
      )
      const { lines, totals, withoutPrice } = await previewInvoice(store, PRICES, OCTOBER)
      assert.deepEqual(
        lines.map(({ subscription, units, usage, amount, currency }) => [subscription, units, usage, amount, currency]),
        [
          ['ended', -2_000_000, '-0.50', '-0.50', 'EUR'],
          ['one', 2_020_000, '0.51', '50.41', 'EUR'],
          ['two', 500_000, '17', '10017', 'JPY'],
        ],
      )
      assert.deepEqual(totals, [
        { currency: 'EUR', amount: '49.91' },
        { currency: 'JPY', amount: '10017' },
      ])
      assert.equal(withoutPrice, 2)
      await assert.rejects(previewInvoice(store, PRICES, { ...OCTOBER, linesMax: 2 }), /more than 2 lines/)
    })

    test('bytes are charged by the decimal gigabyte, rounded by themselves, also where nothing else was used', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      await add(store, 'one')
      await add(store, 'over', { validUntil: at('2026-09-01T00:00') })
      await store.addUsage(
        [
          usageOf('one', at('2026-10-01T00:00'), 1_000_000, 'rpc', 1_500_000_000),
          usageOf('one', at('2026-10-31T23:00'), 0, 'shreds', 998_500_000_000),
          usageOf('one', at('2026-11-01T00:00'), 0, 'ws', 10 ** 12),
          usageOf('over', at('2026-10-15T00:00'), 0, 'grpc', 100_000_000),
        ],
        new Map(),
      )
      const build = { currency: 'EUR', decimals: 2, perMonth: '31', perMillionUnits: '0.25', perGigabyte: '0.05' }
      const { lines, totals } = await previewInvoice(store, { build }, OCTOBER)
      assert.deepEqual(
        lines.map(({ subscription, bytes, usage, transfer, amount }) => [subscription, bytes, usage, transfer, amount]),
        [
          ['one', 10 ** 12, '0.25', '50.00', '81.25'],
          ['over', 10 ** 8, '0.00', '0.01', '0.01'],
        ],
      )
      assert.deepEqual(totals, [{ currency: 'EUR', amount: '81.26' }])
    })
  })

test('a price is a decimal in quotes, in a named currency', () => {
  const parse = (price: object) => billingOptions.safeParse({ prices: { build: price } })
  assert.deepEqual(parse({ currency: 'EUR', perMonth: '49' }).data?.prices, {
    build: { currency: 'EUR', decimals: 2, perMonth: '49', perMillionUnits: '0', perGigabyte: '0' },
  })
  for (const wrong of [
    { perMonth: '49' },
    { currency: 'euro' },
    { currency: 'EUR', perMonth: 49 },
    { currency: 'EUR', perMonth: '-1' },
    { currency: 'EUR', perMonth: '1e3' },
    { currency: 'EUR', perTerabyte: '1' },
    { currency: 'EUR', perGigabyte: 0.05 },
  ])
    assert.equal(parse(wrong).success, false, JSON.stringify(wrong))
})
