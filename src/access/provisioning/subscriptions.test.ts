import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { CONTEXT, ENGINES, type Engines, STORE_DEPS, startEngines } from '../../../test/support/store/engines.ts'
import type { AccessStore } from '../store/store.ts'
import { addCustomer } from './customers.ts'
import { DESTINATIONS_PER_IP_MAX, setDestination } from './destinations.ts'
import { cancelSubscription, createSubscription } from './subscriptions.ts'

let engines: Engines
before(async () => {
  engines = await startEngines()
})
after(() => engines[Symbol.asyncDispose]())

const on = (store: AccessStore, dryRun = false) => ({ ...CONTEXT, store, random: STORE_DEPS.random, dryRun })

function create(store: AccessStore, name: string, address?: string, dryRun = false) {
  const destination = address === undefined ? undefined : { address, vouched: true }
  const fixed = { customer: 'acme', plan: 'build', overrides: {}, validUntil: null }
  return createSubscription(on(store, dryRun), { ...fixed, name, products: ['shreds-raw'], destination })
}

for (const engine of ENGINES)
  describe(`a new subscription with a destination on ${engine}`, () => {
    test('an address of another subscription is refused as set-destination does, and nothing is recorded', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      await addCustomer(on(store), { name: 'acme', contact: '' })
      await create(store, 'first', '8.8.8.8:20001')
      const { seq } = await store.auditHead()
      const refused = { code: 'already-exists', message: '8.8.8.8:20001 is the destination of another subscription' }
      await assert.rejects(create(store, 'second', '8.8.8.8:20001'), refused)
      await assert.rejects(create(store, 'second', '8.8.8.8:20001', true), refused)
      assert.deepEqual(await store.find('subscriptions', { name: 'second' }), [])
      assert.equal((await store.auditHead()).seq, seq)
      await create(store, 'second')
      const set = setDestination(on(store), { subscription: 'second', destination: '8.8.8.8:20001', vouched: true })
      await assert.rejects(set, refused)

      await cancelSubscription(on(store), { subscription: 'first' })
      await create(store, 'third', '8.8.8.8:20001')
      for (let n = 1; n < DESTINATIONS_PER_IP_MAX; n++) await create(store, `near-${n}`, `8.8.8.8:${30_000 + n}`)
      await assert.rejects(create(store, 'one-more', '8.8.8.8:40000'), { code: 'invalid-value', message: /the most/ })
    })

    test('of concurrent creations with one address one is recorded', async () => {
      await using bench = await engines.bench(engine)
      await using first = await bench.open()
      await using second = await bench.open()
      await addCustomer(on(first), { name: 'acme', contact: '' })
      for (let round = 0; round < 5; round++) {
        const address = `9.9.9.9:${20_000 + round}`
        const outcomes = await Promise.allSettled([
          create(first, `a-${round}`, address),
          create(second, `b-${round}`, address),
        ])
        const codes = outcomes.map((each) =>
          each.status === 'fulfilled' ? 'ok' : (each.reason as { code: string }).code,
        )
        assert.deepEqual(codes.toSorted(), ['already-exists', 'ok'], address)
      }
    })
  })
