import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import { repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import {
  addCustomer,
  CONTEXT,
  customer,
  ENGINES,
  type Engines,
  SECOND_MS,
  type StoreBench,
  startEngines,
  until,
} from '../../../test/support/store/engines.ts'
import { PRODUCT_KEYS } from '../../contract/products.ts'
import { isServiceError } from '../../core/error.ts'
import { latestVersion, MIGRATIONS } from './migrations.ts'
import type { RecordKind, Records, UsageRow } from './model.ts'
import type { AccessStore, AccessTransaction } from './store.ts'
import { RECORD_KINDS } from './tables.ts'

let engines: Engines
before(async () => {
  engines = await startEngines()
})
after(() => engines[Symbol.asyncDispose]())

const code = (expected: string) => (error: unknown) => {
  assert.ok(isServiceError(error, expected), `expected ${expected}, got ${String(error)}`)
  return true
}

async function put<K extends RecordKind>(
  store: AccessStore,
  kind: K,
  record: Omit<Records[K], 'revision'>,
): Promise<void> {
  await store.change(CONTEXT, async (tx) => {
    await tx.put(kind, record)
    return { audit: { action: 'test.put', subjects: [(record as { id: string }).id] }, result: undefined }
  })
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = []
  for await (const item of items) collected.push(item)
  return collected
}

const text = fc.string({ unit: 'grapheme', maxLength: 40 })
const time = fc.integer({ min: 0, max: 2 ** 45 })
const limits = fc.record({
  unitsPerSecond: fc.option(fc.nat()),
  requestBytes: fc.nat(),
  methods: fc.dictionary(
    fc.string({ maxLength: 8 }).filter((name) => name !== '__proto__'),
    fc.record({ cost: fc.nat() }),
  ),
})

/** Arbitrary content of a record. The test sets ids and unique fields. */
const contents: { [K in RecordKind]: fc.Arbitrary<object> } = {
  customers: fc.record({ contact: text, state: fc.constantFrom('active', 'suspended'), createdAt: time }),
  subscriptions: fc.record({
    customerId: text,
    plan: text,
    products: fc.subarray(PRODUCT_KEYS),
    overrides: limits,
    state: fc.constantFrom('active', 'suspended', 'cancelled'),
    createdAt: time,
    validUntil: fc.option(time),
  }),
  tokens: fc.record({
    subscriptionId: text,
    last4: text,
    state: fc.constantFrom('active', 'retiring', 'revoked'),
    createdAt: time,
    createdBy: text,
    notAfter: fc.option(time),
  }),
  destinations: fc.record({
    ip: text,
    port: fc.nat(65_535),
    proof: fc.constantFrom('unproven', 'vouched', 'proven'),
    paused: fc.boolean(),
    setAt: time,
  }),
  indexerCredentials: fc.record({ subscriptionId: text, sha256: text, state: text, createdAt: time }),
  nodes: fc.record({
    rpc: text,
    ws: text,
    grpc: text,
    credential: fc.option(text),
    subscriptionId: fc.option(text),
    createdAt: time,
  }),
  notes: fc.record({ subjectId: text, text, createdAt: time }),
  refunds: fc.record({ subscriptionId: text, amount: text, currency: text, reason: text, createdAt: time }),
  admins: fc.constant({ name: '', role: '', last4: '', state: '', createdAt: 0, createdBy: '', expiresAt: null }),
}

/** Fields of which no two records may have the same value. */
const UNIQUE: { [K in RecordKind]?: string } = {
  customers: 'name',
  subscriptions: 'name',
  tokens: 'sha256',
  indexerCredentials: 'username',
  nodes: 'name',
  admins: 'sha256',
}

for (const engine of ENGINES) {
  describe(`access store on ${engine}`, () => {
    let bench: StoreBench
    let store: AccessStore
    before(async () => {
      bench = await engines.bench(engine)
      store = await bench.open()
    })
    after(async () => {
      await store[Symbol.asyncDispose]()
      await bench[Symbol.asyncDispose]()
    })

    test('returns every record as it was written', async (t) => {
      let made = 0
      const property = fc.asyncProperty(
        fc
          .constantFrom(...RECORD_KINDS)
          .chain((kind) =>
            contents[kind].map((content) => ({ kind, content: JSON.parse(JSON.stringify(content)) as object })),
          ),
        async ({ kind, content }) => {
          const unique = UNIQUE[kind] === undefined ? {} : { [UNIQUE[kind]]: `unique ${made}` }
          const record = { id: `record-${made++}`, ...unique, ...content } as unknown as Records[typeof kind]
          await put(store, kind, record)
          const found = await store.get(kind, record.id)
          assert.deepEqual(found, { ...record, revision: await store.revision() })
        },
      )
      await fc.assert(property, { seed: seedOf(t), numRuns: repeatsOf({ short: 60, full: 1000 }) })
      assert.deepEqual(await store.integrity(), [])
    })

    test('refuses values that it could not return unchanged', async () => {
      await assert.rejects(put(store, 'customers', { ...customer('nul'), contact: 'a\0b' }), code('invalid-value'))
      await assert.rejects(put(store, 'customers', { ...customer('half'), contact: '\ud800' }), code('invalid-value'))
      await assert.rejects(put(store, 'customers', { ...customer('part'), createdAt: 0.5 }), code('invalid-value'))
      await assert.rejects(
        put(store, 'notes', { id: 'n', subjectId: 's', text: 'x'.repeat(70_000), createdAt: 1 }),
        code('invalid-value'),
      )
    })

    test('keeps names, digests and user names unique; an update may keep them', async () => {
      await addCustomer(store, 'only-one')
      await assert.rejects(put(store, 'customers', { ...customer('other'), name: 'only-one' }), code('already-exists'))
      await put(store, 'customers', { ...customer('only-one'), contact: 'changed' })
      assert.equal((await store.find('customers', { name: 'only-one' }))[0]?.contact, 'changed')
      assert.equal(await store.get('customers', 'cus_other'), undefined)
    })

    test('refuses to change a lookup key of a record', async () => {
      const token = {
        id: 'tok_fixed',
        subscriptionId: 'sub_1',
        sha256: 'aa',
        last4: 'abcd',
        state: 'active',
        createdAt: 1,
        createdBy: 'root',
        notAfter: null,
      } as const
      await put(store, 'tokens', token)
      await put(store, 'tokens', { ...token, state: 'revoked' })
      await assert.rejects(put(store, 'tokens', { ...token, sha256: 'bb' }), code('invalid-value'))
    })

    test('finds by several fields and by null', async () => {
      const node = {
        id: 'node_a',
        name: 'a',
        rpc: '',
        ws: '',
        grpc: '',
        credential: null,
        subscriptionId: null,
        createdAt: 1,
      }
      await put(store, 'nodes', node)
      await put(store, 'nodes', { ...node, id: 'node_b', name: 'b', subscriptionId: 'sub_b' })
      assert.deepEqual(
        (await store.find('nodes', { subscriptionId: 'sub_b', name: 'b' })).map(({ id }) => id),
        ['node_b'],
      )
      assert.ok((await store.find('nodes', { subscriptionId: null })).some(({ id }) => id === 'node_a'))
      assert.deepEqual(await store.find('nodes', { subscriptionId: 'sub_b', name: 'a' }), [])
    })

    test('returns the records changed since a revision, in order, each once and in its current state', async () => {
      const from = await store.revision()
      for (const name of ['since-1', 'since-2', 'since-3']) await addCustomer(store, name)
      await put(store, 'customers', { ...customer('since-1'), contact: 'again' })
      const changed = await collect(store.changedSince('customers', from))
      assert.deepEqual(
        changed.map(({ name, revision }) => [name, revision - from]),
        [
          ['since-2', 2],
          ['since-3', 3],
          ['since-1', 4],
        ],
      )
      assert.deepEqual(await collect(store.changedSince('customers', from + 4)), [])
      assert.deepEqual(await collect(store.changedSince('subscriptions', from)), [])
    })

    test('a change is atomic', async () => {
      const was = { revision: await store.revision(), head: await store.auditHead() }
      const failing = store.change(CONTEXT, async (tx) => {
        await tx.put('customers', customer('half-1'))
        assert.equal((await tx.get('customers', 'cus_half-1'))?.name, 'half-1', 'a change sees its own writes')
        await tx.put('customers', customer('half-2'))
        throw new RangeError('no')
      })
      await assert.rejects(failing, RangeError)
      assert.deepEqual({ revision: await store.revision(), head: await store.auditHead() }, was)
      assert.equal(await store.get('customers', 'cus_half-1'), undefined)
      await addCustomer(store, 'half-1')
      assert.equal((await store.auditHead()).seq, was.head.seq + 1)
    })

    test('refuses writes after the change has ended', async () => {
      let kept: AccessTransaction | undefined
      await store.change(CONTEXT, async (tx) => {
        kept = tx
        return { audit: { action: 'test.keep', subjects: [] }, result: undefined }
      })
      await assert.rejects(async () => kept?.put('customers', customer('late')), /after its change ended/)
      assert.equal(await store.get('customers', 'cus_late'), undefined)
    })

    test('a reader sees one state, regardless of concurrent writes', async () => {
      await store.read(async (view) => {
        const revision = await view.revision()
        await addCustomer(store, 'meanwhile')
        assert.equal(await view.revision(), revision)
        assert.equal(await view.get('customers', 'cus_meanwhile'), undefined)
        assert.equal((await store.get('customers', 'cus_meanwhile'))?.name, 'meanwhile')
      })
    })

    test('writes one audit line for each change, with actor and action', async () => {
      const before = await store.auditHead()
      await addCustomer(store, 'audited')
      const [line = '', ...more] = await collect(store.auditLines(before.seq + 1))
      assert.deepEqual(more, [])
      assert.deepEqual(JSON.parse(line), {
        seq: before.seq + 1,
        time: '2027-01-01T00:00:00.000Z',
        actor: { uid: 1000, user: 'operator', sudo_user: null, tty: '/dev/pts/0' },
        action: 'customer.add',
        subjects: ['cus_audited'],
        before: null,
        after: { name: 'audited' },
        version: '1.2.3',
        prev: before.hash,
      })
    })

    test('adds up usage, also from two processes at once, and remembers the last use', async () => {
      await using other = await bench.open({ check: 'quick' })
      const hour = Date.UTC(2027, 0, 1, 7)
      const row = (units: number, server: UsageRow['interface']): UsageRow => ({
        subscriptionId: 'sub_used',
        hour,
        interface: server,
        calls: 1,
        units,
        refused: 2,
        bytes: 1000 * units,
      })
      const add = async (to: AccessStore, lastUsedMs: number): Promise<void> => {
        const rows = [row(5, 'ws'), row(7, 'rpc'), row(1, 'rpc')]
        // Counting never waits for a writer; the caller retries later.
        await until(() =>
          to.addUsage(rows, new Map([['tok_used', lastUsedMs]])).then(
            () => true,
            (error: unknown) => !code('store-locked')(error),
          ),
        )
      }
      await Promise.all(Array.from({ length: 10 }, (_, at) => add(at % 2 === 0 ? store : other, 1000 + at)))
      assert.deepEqual(await store.usage({ subscriptionId: 'sub_used' }), [
        { subscriptionId: 'sub_used', hour, interface: 'rpc', calls: 20, units: 80, refused: 40, bytes: 80_000 },
        { subscriptionId: 'sub_used', hour, interface: 'ws', calls: 10, units: 50, refused: 20, bytes: 50_000 },
      ])
      assert.equal((await store.unitsSince(hour)).get('sub_used'), 130)
      assert.equal((await store.unitsSince(hour + 1)).get('sub_used'), undefined)
      assert.deepEqual(await store.usage({ fromMs: hour + 1 }), [])
      assert.deepEqual(await store.usage({ toMs: hour }), [])
      assert.equal(await store.lastUsed('tok_used'), 1009)
      assert.equal(await store.lastUsed('tok_never'), undefined)
      assert.deepEqual(await store.integrity(), [])
    })

    test('subtracts usage that was written before', async () => {
      const hour = Date.UTC(2027, 0, 1, 8)
      const of = { subscriptionId: 'sub_refunded', hour, interface: 'rpc', refused: 0 } as const
      await store.addUsage([{ ...of, calls: 3, units: 9 }], new Map())
      await store.addUsage([{ ...of, calls: -1, units: -5 }], new Map())
      assert.deepEqual(await store.usage({ subscriptionId: 'sub_refunded' }), [{ ...of, calls: 2, units: 4, bytes: 0 }])
      assert.deepEqual(await store.integrity(), [])
    })

    test('creates a shared key once, however many processes request it at the same time', async () => {
      await using other = await bench.open({ check: 'quick' })
      const keys = await Promise.all([store, other, store, other].map((each) => each.sharedKey('ws-ticket')))
      assert.equal(keys[0]?.length, 32)
      for (const key of keys) assert.deepEqual(key, keys[0])
      assert.notDeepEqual(keys[0], new Uint8Array(32))
    })

    test('notifies followers of a change within a second', async () => {
      await using other = await bench.open({ check: 'quick' })
      const seen: number[] = []
      await using _following = await other.follow((revision) => seen.push(revision))
      assert.deepEqual(seen, [await store.revision()], 'the first call reports the current revision')
      await addCustomer(store, 'followed')
      const changedMs = performance.now()
      const revision = await store.revision()
      await until(() => seen.at(-1) === revision)
      assert.ok(performance.now() - changedMs < SECOND_MS, `took ${performance.now() - changedMs} ms`)
    })

    test('a second writer is refused after the lock wait; readers never wait', async () => {
      await using other = await bench.open({ check: 'quick', lockWaitMs: 150 })
      const held = Promise.withResolvers<void>()
      const begun = Promise.withResolvers<void>()
      const holding = store.change(CONTEXT, async (tx) => {
        await tx.put('customers', customer('holder'))
        begun.resolve()
        await held.promise
        return { audit: { action: 'test.hold', subjects: [] }, result: undefined }
      })
      await begun.promise
      const startMs = performance.now()
      await assert.rejects(addCustomer(other, 'refused'), code('store-locked'))
      const waitedMs = performance.now() - startMs
      assert.ok(waitedMs >= 140 && waitedMs < 4000, `waited ${waitedMs} ms`)
      assert.equal(await other.get('customers', 'cus_holder'), undefined)
      held.resolve()
      await holding
      await addCustomer(other, 'welcome')
      assert.equal((await store.get('customers', 'cus_holder'))?.name, 'holder')
    })
  })

  describe(`tables of the access store on ${engine}`, () => {
    test('are migrated with their rows, and older processes refuse the newer tables', async () => {
      await using bench = await engines.bench(engine)
      await using old = await bench.open()
      await addCustomer(old, 'first')
      const next = [
        ...MIGRATIONS,
        {
          version: latestVersion(MIGRATIONS) + 1,
          migrate: (tx: { run(sql: string): Promise<void> }) => tx.run('CREATE TABLE extra (id TEXT PRIMARY KEY)'),
        },
        {
          version: latestVersion(MIGRATIONS) + 2,
          migrate: (tx: { run(sql: string): Promise<void> }) => tx.run("INSERT INTO extra VALUES ('x')"),
        },
      ]
      await Promise.all([1, 2].map(async () => (await bench.open({ migrations: next }))[Symbol.asyncDispose]()))
      await using migrated = await bench.open({ migrations: next })
      assert.equal((await migrated.get('customers', 'cus_first'))?.name, 'first')
      assert.deepEqual(await bench.tamper('SELECT id FROM extra'), [['x']])
      await addCustomer(migrated, 'second')
      await assert.rejects(bench.open(), code('store-newer'))
      await assert.rejects(old.revision(), code('store-newer'))
      await assert.rejects(addCustomer(old, 'third'), code('store-newer'))
    })

    test('a failed migration leaves the tables as they were', async () => {
      await using bench = await engines.bench(engine)
      await (await bench.open())[Symbol.asyncDispose]()
      const broken = {
        version: latestVersion(MIGRATIONS) + 1,
        migrate: (tx: { run(sql: string): Promise<void> }) => tx.run('CREATE TABLE broken ('),
      }
      const half = { version: latestVersion(MIGRATIONS) + 2, migrate: async () => assert.fail('never reached') }
      await assert.rejects(bench.open({ migrations: [...MIGRATIONS, broken, half] }))
      await using store = await bench.open()
      await addCustomer(store, 'still')
    })
  })
}
