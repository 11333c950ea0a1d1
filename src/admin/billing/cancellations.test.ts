import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { CONTEXT, ENGINES, type Engines, STORE_DEPS, startEngines } from '../../../test/support/store/engines.ts'
import { addCustomer, removeCustomer } from '../../access/provisioning/customers.ts'
import { cancelSubscription, createSubscription } from '../../access/provisioning/subscriptions.ts'
import type { AccessStore } from '../../access/store/store.ts'
import { readCancellations } from './cancellations.ts'

let engines: Engines
before(async () => {
  engines = await startEngines()
})
after(() => engines[Symbol.asyncDispose]())

const OCTOBER = Date.UTC(2026, 9, 1)

function setUp(store: AccessStore) {
  const on = (nowMs: number) => ({ ...CONTEXT, store, random: STORE_DEPS.random, nowMs })
  return {
    on,
    async create(customer: string, name: string): Promise<string> {
      const input = { customer, name, plan: 'build', products: ['bundle'] as const, overrides: {}, validUntil: null }
      return (await createSubscription(on(0), input)).subscription.id
    },
    async recordOf(id: string) {
      const record = await store.get('subscriptions', id)
      assert.ok(record)
      return record
    },
  }
}

for (const engine of ENGINES)
  describe(`cancellations on ${engine}`, () => {
    test('have the times of the audit log; earlier ones are not kept', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      const { on, create, recordOf } = setUp(store)
      await addCustomer(on(0), { name: 'acme', contact: '' })
      const [alone, early, together] = [await create('acme', 'a'), await create('acme', 'b'), await create('acme', 'c')]
      await cancelSubscription(on(OCTOBER), { subscription: 'a' })
      await cancelSubscription(on(OCTOBER - 1), { subscription: 'b' })
      await removeCustomer(on(OCTOBER + 5), { customer: 'acme', force: true })
      // A line of another change that contains the text of a cancellation.
      await store.change({ ...CONTEXT, nowMs: OCTOBER + 9 }, async () => ({
        audit: { action: 'test.put', subjects: [alone], after: { action: 'sub.cancel' } },
        result: undefined,
      }))
      const cancellations = await readCancellations(store, OCTOBER)
      const times = await Promise.all(
        [alone, early, together].map(async (id) => cancellations.atMsOf(await recordOf(id))),
      )
      assert.deepEqual(times, [OCTOBER, Number.NEGATIVE_INFINITY, OCTOBER + 5])
    })

    test('one that is cancelled after the log was read counts as cancelled now', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      const { on, create, recordOf } = setUp(store)
      await addCustomer(on(0), { name: 'acme', contact: '' })
      const id = await create('acme', 'a')
      const cancellations = await readCancellations(store, OCTOBER)
      await cancelSubscription(on(OCTOBER), { subscription: 'a' })
      assert.equal(cancellations.atMsOf(await recordOf(id)), Number.POSITIVE_INFINITY)
    })

    test('more than the limit are refused with its name', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      const { on, create } = setUp(store)
      await addCustomer(on(0), { name: 'acme', contact: '' })
      for (const name of ['a', 'b', 'c']) {
        await create('acme', name)
        await cancelSubscription(on(OCTOBER), { subscription: name })
      }
      await readCancellations(store, OCTOBER, 3)
      await assert.rejects(readCancellations(store, OCTOBER, 2), {
        code: 'invalid-value',
        message: /limit: invoiceCancellations/,
      })
    })
  })
