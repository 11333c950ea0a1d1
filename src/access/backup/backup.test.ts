import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createRandom, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import {
  addCustomer,
  CONTEXT,
  ENGINES,
  type Engines,
  STORE_DEPS,
  type StoreBench,
  startEngines,
} from '../../../test/support/store/engines.ts'
import { isServiceError } from '../../core/error.ts'
import { createFileAtomic } from '../../platform/files/atomic.ts'
import { verifyAudit } from '../audit/verify.ts'
import { addAdmin } from '../provisioning/admins.ts'
import { addCustomer as provisionCustomer } from '../provisioning/customers.ts'
import { createSubscription } from '../provisioning/subscriptions.ts'
import type { AccessStore } from '../store/store.ts'
import { RECORD_KINDS } from '../store/tables.ts'
import { checkBackup, restoreBackup } from './restore.ts'
import type { BackupExtra } from './summary.ts'

const HOUR_MS = 3_600_000
const FACTS = { madeAtMs: Date.UTC(2027, 0, 2), version: '1.2.3' }

let engines: Engines
before(async () => {
  engines = await startEngines()
})
after(() => engines[Symbol.asyncDispose]())

/** A customer with a record of every kind, usage of three hours, and the secrets that were shown once. */
async function fill(store: AccessStore): Promise<string[]> {
  const on = { ...CONTEXT, store, random: STORE_DEPS.random, dryRun: false }
  await provisionCustomer(on, { name: 'acme', contact: 'quoted "text", ümläut \\ and \u2028' })
  const { token, credential } = await createSubscription(on, {
    customer: 'acme',
    name: 'acme-prod',
    plan: 'build',
    products: ['bundle', 'indexer', 'shreds-raw'],
    overrides: { unitsPerSecond: 7 },
    validUntil: null,
    destination: { address: '127.0.0.1:20001', vouched: true },
  })
  assert.ok(token !== undefined && credential !== undefined)
  const row = {
    subscriptionId: token.record.subscriptionId,
    interface: 'rpc' as const,
    calls: 3,
    units: 30,
    refused: 1,
    bytes: 12_345,
    methods: { getSlot: { calls: 2, units: 2, refused: 0 }, other: { calls: 1, units: 28, refused: 1 } },
  }
  const hours = [1, 2, 3].map((hour) => ({ ...row, hour: hour * HOUR_MS }))
  await store.addUsage(hours, new Map([[token.record.id, 12_345]]))
  await store.sharedKey('ws-ticket')
  const admin = await addAdmin(on, { name: 'ana', role: 'billing', expiresMs: null })
  await fillBilling(store, token.record.subscriptionId)
  return [token.secret, credential.password, admin.secret]
}

/** A billing system that is paused, with an event that was sent, one that waits, and one that is dead, and a customer with a billing id. */
async function fillBilling(
  { billing, list }: Pick<AccessStore, 'billing' | 'list'>,
  subscriptionId: string,
): Promise<void> {
  const owner = 'process'
  const state = { sink: 'stripe', storeId: 'store-1', fromHour: HOUR_MS, plannedHour: 0, paused: false, owner: null }
  await billing.begin({ ...state, leaseUntil: 0 })
  await billing.lease('stripe', { owner, nowMs: 1, untilMs: 1000 })
  await billing.openHour('stripe', 3 * HOUR_MS)
  for (const hour of [1, 2, 3])
    await billing.plan('stripe', await billing.page(hour * HOUR_MS, '', 10), ({ row, quantity, amount }) =>
      quantity !== 'units'
        ? undefined
        : { ...row, id: `event-${hour}`, subscriptionId, quantity, part: 1, amount, subject: 'billed' },
    )
  const [sent, dead] = await billing.waiting('stripe', 10)
  assert.ok(sent !== undefined && dead !== undefined)
  await billing.put('stripe', owner, [
    { eventKey: sent.eventKey, state: 'sent', doubtSince: null, reason: null },
    { eventKey: dead.eventKey, state: 'dead', doubtSince: 77, reason: 'outcome unknown' },
  ])
  await billing.release('stripe', owner)
  await billing.setPaused(CONTEXT, 'stripe', true)
  for (const { id } of await list('customers')) await billing.setBillingId(CONTEXT, id, 'cus_AtStripe')
}

/** The content of a store that a backup includes. */
async function contentOf(store: AccessStore): Promise<unknown> {
  const records = Object.fromEntries(
    await Promise.all(RECORD_KINDS.map(async (kind) => [kind, await store.list(kind)] as const)),
  )
  const tokens = await store.list('tokens')
  return {
    records,
    revision: await store.revision(),
    head: await store.auditHead(),
    audit: await Array.fromAsync(store.auditLines(1)),
    usage: await store.usage({}),
    methods: await store.methodUsage({}),
    lastUsed: await Promise.all(tokens.map(({ id }) => store.lastUsed(id))),
    billing: {
      state: await store.billing.state('stripe'),
      waiting: await store.billing.waiting('stripe', 10),
      dead: await store.billing.dead('stripe', 10),
      ids: await store.billing.billingIds((await store.list('customers')).map(({ id }) => id)),
      balances: await balancesOf(store),
    },
  }
}

/** What each hour of the ledger was promised to the billing system, sent events included. */
async function balancesOf({ billing }: AccessStore): Promise<unknown[]> {
  const found: unknown[] = []
  for (const hour of [1, 2, 3])
    await billing.plan('stripe', await billing.page(hour * HOUR_MS, '', 10), ({ amount, promised, lastPart }) => {
      found.push([hour, amount, promised, lastPart])
      return undefined
    })
  return found
}

/** The hours with a mark, which they lose. */
async function takeMarks({ billing }: AccessStore, sink: string): Promise<number[]> {
  const hours: number[] = []
  for (let marked = await billing.markedHour(sink); marked !== undefined; marked = await billing.markedHour(sink)) {
    hours.push(marked.hour)
    await billing.unmarkHour(sink, marked)
  }
  return hours
}

const write = (store: AccessStore, file: string) => createFileAtomic(file, (put) => store.backup(put, FACTS))
const restoreInto = (bench: StoreBench, file: string) => restoreBackup(file, bench.options.location, STORE_DEPS)

for (const from of ENGINES) {
  for (const to of ENGINES) {
    test(`a backup of a store on ${from} is restored completely on ${to}`, async () => {
      await using source = await engines.bench(from)
      await using target = await engines.bench(to)
      const file = join(source.folder, 'backup.jsonl')
      await using store = await source.open()
      const secrets = await fill(store)
      const written = await write(store, file)
      assert.equal(statSync(file).mode & 0o777, 0o600)
      const text = readFileSync(file, 'utf8')
      for (const secret of secrets) assert.ok(!text.includes(secret), 'no secret is in a backup')
      assert.ok(!text.includes(Buffer.from(await store.sharedKey('ws-ticket')).toString('hex')))

      assert.deepEqual(await checkBackup(file), { ...written, extras: [] })
      assert.deepEqual(await restoreInto(target, file), written)
      await using restored = await target.open()
      assert.deepEqual(await contentOf(restored), await contentOf(store))
      assert.deepEqual(await restored.integrity(), [])
      await addCustomer(restored, 'next')
      assert.deepEqual((await verifyAudit(restored)).findings, [], 'the chain continues in store and file')
    })
  }
}

for (const engine of ENGINES) {
  describe(`backups on ${engine}`, () => {
    test('a backup made during writes is consistent', async () => {
      await using source = await engines.bench(engine)
      await using target = await engines.bench('sqlite')
      const file = join(source.folder, 'backup.jsonl')
      await using store = await source.open()
      for (let n = 0; n < 20; n++) await addCustomer(store, `early-${n}`)
      await using other = await source.open({ check: 'quick' })
      const writing = (async () => {
        for (let n = 0; n < 20; n++) await addCustomer(other, `late-${n}`)
      })()
      const { header, counts } = await write(store, file)
      await writing
      assert.equal(counts['customers'], header.revision, 'each change adds one customer')
      assert.equal(counts['audit'], header.revision)
      await restoreInto(target, file)
      await using restored = await target.open()
      assert.equal((await restored.list('customers')).length, header.revision)
    })

    test('a restored store compares the usage of the last 35 days with its billing events again', async () => {
      await using source = await engines.bench(engine)
      await using target = await engines.bench(engine)
      const file = join(source.folder, 'backup.jsonl')
      await using store = await source.open()
      const day = 24 * HOUR_MS
      const plannedHour = 40 * day
      const row = { interface: 'rpc' as const, calls: 1, units: 1, refused: 0 }
      const hours = [3, 5, 6, 39].map((days) => days * day)
      for (const subscriptionId of ['sub_1', 'sub_2'])
        await store.addUsage(
          [...hours, plannedHour, plannedHour + HOUR_MS].map((hour) => ({ ...row, subscriptionId, hour })),
          new Map(),
        )
      const state = { storeId: 'store-1', fromHour: 0, plannedHour: 0, paused: false, owner: null, leaseUntil: 0 }
      for (const sink of ['stripe', 'lago']) await store.billing.begin({ ...state, sink })
      await store.billing.openHour('stripe', plannedHour)
      // Late usage: its hour has a mark, and no event contains it.
      await store.addUsage([{ ...row, subscriptionId: 'sub_1', hour: 39 * day }], new Map())
      await write(store, file)
      await restoreInto(target, file)
      await using restored = await target.open()
      assert.deepEqual(await takeMarks(restored, 'stripe'), [6 * day, 39 * day, plannedHour])
      assert.deepEqual(await takeMarks(restored, 'lago'), [], 'nothing was planned')
    })

    test('refuses to back up a damaged store', async () => {
      await using source = await engines.bench(engine)
      const file = join(source.folder, 'backup.jsonl')
      {
        await using store = await source.open()
        await addCustomer(store, 'acme')
      }
      await source.tamper("UPDATE customers SET row_check = row_check + 1 WHERE name = 'acme'")
      await using store = await source.open({ check: 'quick' })
      await assert.rejects(write(store, file), (error) => isServiceError(error, 'store-corrupt'))
      assert.throws(() => statSync(file))
    })

    test('refuses to restore into an existing store', async () => {
      await using source = await engines.bench(engine)
      await using target = await engines.bench(engine)
      const file = join(source.folder, 'backup.jsonl')
      await using store = await source.open()
      await addCustomer(store, 'acme')
      await write(store, file)
      await using present = await target.open()
      await addCustomer(present, 'here')
      await assert.rejects(restoreInto(target, file), (error) => isServiceError(error, 'already-exists'))
      assert.deepEqual(
        (await present.list('customers')).map(({ name }) => name),
        ['here'],
      )
    })
  })
}

test('refuses a truncated, changed or foreign backup, and creates no store from it', async (t) => {
  await using source = await engines.bench('sqlite')
  await using store = await source.open()
  await fill(store)
  const file = join(source.folder, 'backup.jsonl')
  await write(store, file)
  const whole = readFileSync(file)
  const damaged = join(source.folder, 'damaged.jsonl')
  const refused = async (bytes: Uint8Array | string, what: string) => {
    writeFileSync(damaged, bytes)
    await assert.rejects(
      checkBackup(damaged),
      (error) => isServiceError(error, 'store-corrupt') || isServiceError(error, 'store-newer'),
      what,
    )
    await using target = await engines.bench('sqlite')
    await assert.rejects(restoreInto(target, damaged), isServiceError, what)
    assert.throws(() => statSync(join(target.folder, 'access.db')), 'no store was created')
  }
  const random = createRandom(seedOf(t))
  const cuts = repeatsOf({ short: 60, full: 2000 })
  for (let n = 0; n < cuts; n++) {
    const at = random(whole.length)
    const flipped = Buffer.from(whole)
    flipped[at] = (flipped[at] as number) ^ (1 << random(8))
    await refused(flipped, `a bit of byte ${at}`)
  }
  for (let n = 0; n < 20; n++) {
    const length = random(whole.length)
    await refused(whole.subarray(0, length), `cut at ${length}`)
  }
  const lines = whole.toString().trimEnd().split('\n')
  const text = (changed: readonly string[]) => `${changed.join('\n')}\n`
  await refused('', 'empty')
  await refused('not a backup\n', 'something else')
  await refused(text(lines.toSpliced(3, 1)), 'a line left out')
  await refused(text([...lines, lines[1] as string]), 'a line after the end')
  await refused(
    text([(lines[0] as string).replace(/"schema_version":\d+/, '"schema_version":9'), ...lines.slice(1)]),
    'newer',
  )
})

test('other content passes through a backup, and keys shared by processes are restored', async () => {
  await using source = await engines.bench('sqlite')
  await using target = await engines.bench('postgres')
  await using store = await source.open()
  await fill(store)
  const file = join(source.folder, 'backup.jsonl')
  const seen: string[] = []
  async function* extras(keys: readonly { purpose: string }[]): AsyncGenerator<BackupExtra> {
    seen.push(...keys.map(({ purpose }) => purpose))
    yield { kind: 'cursor', value: { name: 'a', value: 7 } }
  }
  await createFileAtomic(file, (put) => store.backup(put, { ...FACTS, extras }))
  assert.ok(seen.includes('ws-ticket'), seen.join())
  assert.deepEqual((await checkBackup(file)).extras, [{ kind: 'cursor', value: { name: 'a', value: 7 } }])
  assert.deepEqual((await checkBackup(file, ['sealed_keys'])).extras, [])
  const keyHex = Buffer.from(await store.sharedKey('ws-ticket')).toString('hex')
  await restoreBackup(file, target.options.location, { ...STORE_DEPS, sharedKeys: [{ purpose: 'ws-ticket', keyHex }] })
  await using restored = await target.open()
  assert.equal(Buffer.from(await restored.sharedKey('ws-ticket')).toString('hex'), keyHex)
})

test('restores a backup of the earlier formats, the first of which has the store only', async () => {
  await using source = await engines.bench('sqlite')
  await using store = await source.open()
  await fill(store)
  const file = join(source.folder, 'backup.jsonl')
  await write(store, file)
  const written = readFileSync(file, 'utf8')
  assert.match(written, /^\{"backup":\{"format":3,/)
  const { createHash } = await import('node:crypto')
  const writeFormat = (format: number) => {
    const body = written.replace('"format":3', `"format":${format}`).split('\n').slice(0, -2)
    const sha256 = createHash('sha256')
      .update(`${body.join('\n')}\n`)
      .digest('hex')
    writeFileSync(file, `${body.join('\n')}\n${JSON.stringify({ end: { lines: body.length, sha256 } })}\n`)
  }
  for (const format of [1, 2]) {
    writeFormat(format)
    await using target = await engines.bench('sqlite')
    await restoreInto(target, file)
    await using restored = await target.open()
    assert.deepEqual(await contentOf(restored), await contentOf(store))
  }
  writeFormat(4)
  await assert.rejects(checkBackup(file), { code: 'store-newer', message: /made by Sluice .*format 4.*knows format 3/ })
})

test('a backup of the first version of the tables is restored', async () => {
  await using source = await engines.bench('sqlite')
  await using target = await engines.bench('sqlite')
  await using store = await source.open()
  await addCustomer(store, 'acme')
  const usage = { subscriptionId: 'sub_a', hour: HOUR_MS, interface: 'rpc', calls: 3, units: 30, refused: 1 } as const
  await store.addUsage([usage], new Map())
  const file = join(source.folder, 'backup.jsonl')
  await write(store, file)
  const [header = '', ...rest] = readFileSync(file, 'utf8').replace(',"bytes":0', '').trimEnd().split('\n')
  const body = `${[header.replace(/"schema_version":\d+/, '"schema_version":1'), ...rest.slice(0, -1)].join('\n')}\n`
  const end = { lines: rest.length, sha256: hash('sha256', body) }
  writeFileSync(file, `${body}${JSON.stringify({ end })}\n`)
  await restoreInto(target, file)
  await using restored = await target.open()
  assert.deepEqual(
    (await restored.list('customers')).map(({ name }) => name),
    ['acme'],
  )
  assert.doesNotMatch(rest.join(), /bytes/)
  assert.deepEqual(await restored.usage({}), [{ ...usage, bytes: 0 }])
  assert.deepEqual(await restored.integrity(), [])
})

test('a correct file hash does not hide a broken chain', async () => {
  await using source = await engines.bench('sqlite')
  await using store = await source.open()
  for (const name of ['a', 'b', 'c']) await addCustomer(store, name)
  const file = join(source.folder, 'backup.jsonl')
  await write(store, file)
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  const changed = lines.map((line) => (line.includes('cus_b') ? line.replaceAll('operator', 'nobody99') : line))
  const { createHash } = await import('node:crypto')
  const body = `${changed.slice(0, -1).join('\n')}\n`
  const end = { lines: changed.length - 1, sha256: createHash('sha256').update(body).digest('hex') }
  writeFileSync(file, `${body}${JSON.stringify({ end })}\n`)
  await assert.rejects(checkBackup(file), /audit chain/)
})

test('never replaces an existing backup file, and a failed backup leaves no file', async () => {
  await using source = await engines.bench('sqlite')
  await using store = await source.open()
  const file = join(source.folder, 'backup.jsonl')
  writeFileSync(file, 'mine')
  await assert.rejects(write(store, file), (error) => isServiceError(error, 'already-exists'))
  assert.equal(readFileSync(file, 'utf8'), 'mine')
  const failing = createFileAtomic(join(source.folder, 'other'), () => Promise.reject(new Error('no')))
  await assert.rejects(failing, /no/)
  await assert.rejects(write(store, join(source.folder, 'nowhere', 'x')), (error) => isServiceError(error, 'not-found'))
  const { readdirSync } = await import('node:fs')
  assert.deepEqual(
    readdirSync(source.folder).filter((name) => name.includes('tmp') || name === 'other'),
    [],
  )
})
