import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { isFull, repeatsOf } from '../../../test/support/process/property.ts'
import {
  addCustomer,
  CONTEXT,
  customer,
  ENGINES,
  type Engines,
  SECOND_MS,
  STORE_DEPS,
  startEngines,
  until,
} from '../../../test/support/store/engines.ts'
import { measureSnapshot } from '../../../test/support/store/snapshot-load.ts'
import { startSnapshotReader } from '../../../test/support/store/snapshot-reader.ts'
import type { Subscription, Token } from '../store/model.ts'
import type { AccessStore } from '../store/store.ts'
import { followStore } from './follow.ts'
import type { AccessSnapshot } from './snapshot.ts'

let engines: Engines
before(async () => {
  engines = await startEngines()
})
after(() => engines[Symbol.asyncDispose]())

const subscription: Omit<Subscription, 'revision'> = {
  id: 'sub_1',
  customerId: 'cus_acme',
  name: 'acme-main',
  plan: 'pro',
  products: ['bundle'],
  overrides: {},
  state: 'active',
  createdAt: 1,
  validUntil: null,
}

const token: Omit<Token, 'revision'> = {
  id: 'tok_1',
  subscriptionId: 'sub_1',
  sha256: 'ab'.repeat(32),
  last4: 'abcd',
  state: 'active',
  createdAt: 1,
  createdBy: 'root',
  notAfter: null,
}

async function provision(store: AccessStore): Promise<void> {
  await store.change(CONTEXT, async (tx) => {
    await tx.put('customers', customer('acme'))
    await tx.put('subscriptions', subscription)
    await tx.put('tokens', token)
    await tx.put('destinations', {
      id: 'sub_1',
      ip: '127.0.0.1',
      port: 20_001,
      proof: 'vouched',
      paused: false,
      setAt: 1,
    })
    await tx.put('indexerCredentials', {
      id: 'idx_1',
      subscriptionId: 'sub_1',
      username: 'acme',
      sha256: 'cd',
      state: 'active',
      createdAt: 1,
    })
    const node = { rpc: 'http://n', ws: 'ws://n', grpc: 'http://n', credential: null, createdAt: 1 }
    await tx.put('nodes', { ...node, id: 'node_1', name: 'one', subscriptionId: 'sub_1' })
    await tx.put('nodes', { ...node, id: 'node_2', name: 'two', subscriptionId: null })
    return { audit: { action: 'test.provision', subjects: ['sub_1'] }, result: undefined }
  })
}

for (const engine of ENGINES) {
  describe(`a snapshot of the store on ${engine}`, () => {
    test('has every record that authorization needs', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      await provision(store)
      await using follower = await followStore(store, STORE_DEPS)
      const snapshot = follower.current()
      assert.equal(snapshot.revision, 1)
      assert.deepEqual(snapshot.byDigest(token.sha256), {
        token: { ...token, revision: 1 },
        subscription: { ...subscription, revision: 1 },
        customer: { ...customer('acme'), revision: 1 },
      })
      assert.equal(snapshot.byDigest('00'), undefined)
      assert.equal(snapshot.subscription('sub_1')?.name, 'acme-main')
      assert.equal(snapshot.customer('cus_acme')?.name, 'acme')
      assert.equal(snapshot.destination('sub_1')?.port, 20_001)
      assert.equal(snapshot.destination('sub_2'), undefined)
      assert.equal(snapshot.indexerCredential('acme')?.id, 'idx_1')
      assert.equal(snapshot.node('node_2')?.name, 'two')
      assert.deepEqual(
        snapshot.nodesOf('sub_1').map(({ id }) => id),
        ['node_1'],
      )
      assert.deepEqual(snapshot.nodesOf('sub_2'), [])
      assert.deepEqual(snapshot.counts(), { customers: 1, subscriptions: 1, tokens: 1 })
      assert.deepEqual(
        [...snapshot.subscriptions()].map(({ id }) => id),
        ['sub_1'],
      )
    })

    test('is replaced when the store changes; the old snapshot does not change', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      await using other = await bench.open({ check: 'quick' })
      await provision(store)
      const swaps: AccessSnapshot[] = []
      await using follower = await followStore(other, STORE_DEPS)
      follower.onSwap((snapshot) => swaps.push(snapshot))
      const old = follower.current()
      await store.change(CONTEXT, async (tx) => {
        await tx.put('tokens', { ...token, state: 'revoked' })
        await tx.put('customers', customer('second'))
        return { audit: { action: 'test.revoke', subjects: ['tok_1'] }, result: undefined }
      })
      const changedMs = performance.now()
      await until(() => follower.current().byDigest(token.sha256)?.token.state === 'revoked')
      assert.ok(performance.now() - changedMs < SECOND_MS, `took ${performance.now() - changedMs} ms`)
      assert.equal(swaps.at(-1), follower.current())
      assert.deepEqual(follower.current().counts(), { customers: 2, subscriptions: 1, tokens: 1 })
      assert.equal(old.byDigest(token.sha256)?.token.state, 'active')
      assert.deepEqual(old.counts(), { customers: 1, subscriptions: 1, tokens: 1 })
    })

    test('never mixes two changes, however fast they follow each other', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      await using other = await bench.open({ check: 'quick' })
      await provision(store)
      const torn: string[] = []
      let swaps = 0
      await using follower = await followStore(other, STORE_DEPS)
      follower.onSwap((snapshot) => {
        swaps += 1
        const marks = [
          snapshot.customer('cus_acme')?.contact,
          snapshot.subscription('sub_1')?.plan,
          snapshot.byDigest(token.sha256)?.token.createdBy,
        ]
        if (new Set(marks).size !== 1) torn.push(marks.join())
      })
      const changes = repeatsOf({ short: 60, full: 500 })
      for (let at = 1; at <= changes; at++) {
        await store.change(CONTEXT, async (tx) => {
          await tx.put('tokens', { ...token, createdBy: `${at}` })
          await tx.put('customers', { ...customer('acme'), contact: `${at}` })
          await tx.put('subscriptions', { ...subscription, plan: `${at}` })
          return { audit: { action: 'test.mark', subjects: ['sub_1'] }, result: undefined }
        })
      }
      await until(() => follower.current().customer('cus_acme')?.contact === `${changes}`)
      assert.deepEqual(torn, [])
      assert.ok(swaps >= 2, `${swaps} swaps`)
      assert.equal(follower.current().revision, changes + 1)
    })
  })
}

test('another thread reads a snapshot in the memory of the first, and later ones after it has them', async () => {
  await using bench = await engines.bench('sqlite')
  await using store = await bench.open()
  await provision(store)
  await using follower = await followStore(store, STORE_DEPS)
  await using reader = startSnapshotReader()
  const first = await reader.read(follower.current().shared(), token.sha256)
  assert.deepEqual(first, { revision: 1, found: follower.current().byDigest(token.sha256), customers: 1 })
  await store.change(CONTEXT, async (tx) => {
    await tx.put('tokens', { ...token, state: 'revoked' })
    await tx.put('customers', customer('second'))
    return { audit: { action: 'test.revoke', subjects: ['tok_1'] }, result: undefined }
  })
  await until(() => follower.current().revision === 2)
  const second = await reader.read(follower.current().shared(), token.sha256)
  assert.deepEqual([second.found?.token.state, second.customers], ['revoked', 2])
  assert.deepEqual(await reader.readAgain(0, token.sha256), first)
})

test('while PostgreSQL is unreachable the last snapshot stays in use; afterwards changes are followed again', async () => {
  await using own = await startEngines()
  await using bench = await own.bench('postgres')
  await using store = await bench.open()
  await using other = await bench.open({ check: 'quick' })
  await provision(store)
  await using follower = await followStore(other, STORE_DEPS)
  await own.postgres.stop('SIGQUIT')
  await assert.rejects(addCustomer(store, 'unreachable'), { code: 'store-unavailable' })
  assert.equal(follower.current().byDigest(token.sha256)?.token.id, 'tok_1')
  await own.postgres.start()
  await addCustomer(store, 'back')
  await until(() => follower.current().customer('cus_back') !== undefined)
})

test('reloads a store whose revision has decreased', async () => {
  await using bench = await engines.bench('sqlite')
  await using older = await engines.bench('sqlite')
  await using store = await bench.open()
  await using restored = await older.open()
  await provision(store)
  await addCustomer(store, 'lost')
  await provision(restored)
  let read = store.read.bind(store)
  let report: (revision: number) => void = () => {}
  const swapped: AccessStore = {
    ...store,
    read: (work) => read(work),
    async follow(onMoved) {
      report = onMoved
      return { async [Symbol.asyncDispose]() {} }
    },
  }
  await using follower = await followStore(swapped, STORE_DEPS)
  assert.equal(follower.current().customer('cus_lost')?.name, 'lost')
  read = restored.read.bind(restored)
  report(1)
  await until(() => follower.current().revision === 1)
  assert.equal(follower.current().customer('cus_lost'), undefined)
  assert.equal(follower.current().customer('cus_acme')?.name, 'acme')
})

for (const engine of isFull ? ENGINES : (['sqlite'] as const)) {
  test(`loads 100,000 subscriptions within the limits of time and memory: ${engine}`, async (t) => {
    const figures = await measureSnapshot(engine, 100_000)
    t.diagnostic(JSON.stringify(figures))
    assert.equal(figures.count, 100_000)
    // The limit is 2 s; a machine busy with other tests gets more. Memory does not depend on load.
    assert.ok(figures.loadMs <= 10_000, `took ${figures.loadMs} ms`)
    assert.ok(figures.rssMiB <= 200, `held ${figures.rssMiB} MiB`)
  })
}
