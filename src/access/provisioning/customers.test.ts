import assert from 'node:assert/strict'
import { test } from 'node:test'
import { insertRecords } from '../../../test/support/store/rows.ts'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { openSqlite } from '../../platform/db/sqlite.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { verifyAudit } from '../audit/verify.ts'
import { openStore } from '../store/open.ts'
import type { AccessStore } from '../store/store.ts'
import type { Provisioning } from './context.ts'
import { addCustomer, removeCustomer } from './customers.ts'
import { newDestination, setDestination } from './destinations.ts'
import { createSubscription } from './subscriptions.ts'

const NOW_MS = 1_800_000_000_000
const MANY = 100
/** Subscriptions of one change, and the customer. */
const SUBJECTS_MAX = 41

type AuditLine = {
  readonly action: string
  readonly subjects: readonly string[]
  readonly after: { cancelled?: string[] }
}

async function openRig() {
  const folder = makeTestFolder()
  const random = createSeededRandom(7)
  const file = folder.file('access.db')
  const clock = createManualClock(NOW_MS)
  const store = await openStore(
    {
      location: { engine: 'sqlite', file },
      audit: { file: folder.file('audit.log'), mirror: 'test', toolVersion: '0' },
      check: 'full',
    },
    { clock, random, log: silentLogger },
  )
  const on: Provisioning = {
    store,
    random,
    actor: { uid: 1000, user: 'op', sudoUser: null, tty: null },
    nowMs: NOW_MS,
  }
  await addCustomer(on, { name: 'acme', contact: '' })
  return {
    on,
    openDatabase: () => openSqlite({ file }, { clock }),
    async subscribe(name: string): Promise<void> {
      const products = ['bundle', 'shreds-raw'] as const
      await createSubscription(on, { customer: 'acme', name, plan: 'build', products, overrides: {}, validUntil: null })
    },
    async lines(): Promise<AuditLine[]> {
      const lines: AuditLine[] = []
      for await (const line of store.auditLines(0)) lines.push(JSON.parse(line) as AuditLine)
      return lines
    },
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}

test('a customer with many subscriptions is removed by small changes, each with its audit line', async () => {
  await using rig = await openRig()
  const { on } = rig
  const names = Array.from({ length: MANY }, (_, at) => `sub-${String(at).padStart(3, '0')}`)
  for (const name of names) await rig.subscribe(name)
  const before = (await rig.lines()).length

  await assert.rejects(removeCustomer(on, { customer: 'acme', force: false }), {
    code: 'wrong-state',
    message: /has subscriptions: sub-000, .*sub-019, and others$/,
  })
  const planned = await removeCustomer({ ...on, dryRun: true }, { customer: 'acme', force: true })
  assert.deepEqual([planned.cancelled.length, planned.customer.state], [MANY, 'removed'])
  assert.equal((await rig.lines()).length, before)

  // The process ends after its first change.
  let changes = 0
  const interrupted: AccessStore = {
    ...on.store,
    change(context, work) {
      changes += 1
      if (changes > 1) throw new Error('the process ends')
      return on.store.change(context, work)
    },
  }
  await assert.rejects(removeCustomer({ ...on, store: interrupted }, { customer: 'acme', force: true }), /process ends/)
  const [half] = await on.store.find('customers', { name: 'acme' })
  assert.equal(half?.state, 'active')
  const live = (await on.store.list('subscriptions')).filter(({ state }) => state === 'active')
  assert.ok(live.length > 0 && live.length < MANY, String(live.length))

  const { customer, cancelled } = await removeCustomer(on, { customer: 'acme', force: true })
  assert.equal(customer.state, 'removed')
  assert.equal(cancelled.length, live.length)
  const subscriptions = await on.store.list('subscriptions')
  assert.ok(subscriptions.every(({ state }) => state === 'cancelled'))
  assert.ok((await on.store.list('tokens')).every(({ state }) => state === 'revoked'))
  const lines = (await rig.lines()).slice(before)
  assert.deepEqual(new Set(lines.map(({ action }) => action)), new Set(['sub.cancel', 'customer.remove']))
  assert.equal(lines.at(-1)?.action, 'customer.remove')
  for (const { subjects } of lines) assert.ok(subjects.length <= SUBJECTS_MAX && subjects.includes(customer.id))
  const recorded = lines.flatMap(({ subjects }) => subjects.filter((id) => id.startsWith('sub_')))
  assert.deepEqual(recorded.toSorted(), subscriptions.map(({ id }) => id).toSorted())
  assert.deepEqual(lines.flatMap(({ after }) => after.cancelled ?? []).toSorted(), names)
  assert.deepEqual((await verifyAudit(on.store)).findings, [])
})

test('a few subscriptions are cancelled by the change that removes the customer', async () => {
  await using rig = await openRig()
  for (const name of ['one', 'two']) await rig.subscribe(name)
  const before = (await rig.lines()).length
  await removeCustomer(rig.on, { customer: 'acme', force: true })
  const lines = (await rig.lines()).slice(before)
  assert.deepEqual(
    lines.map(({ action, after }) => [action, after.cancelled]),
    [['customer.remove', ['one', 'two']]],
  )
})

test('a new destination is compared with those of its address, however many there are', async () => {
  await using rig = await openRig()
  await rig.subscribe('last')
  await rig.subscribe('other')
  const [other] = await rig.on.store.find('subscriptions', { name: 'other' })
  {
    await using database = await rig.openDatabase()
    const many = Array.from({ length: 7000 }, (_, at) =>
      newDestination(`sub_${at}`, { ip: `198.51.${at % 100}.${at % 200}`, port: 20_001 }, true, NOW_MS),
    )
    const near = newDestination(other?.id ?? '', { ip: '8.8.4.7', port: 20_001 }, true, NOW_MS)
    await insertRecords(database, 'destinations', [...many, near])
  }
  let records = 0
  const counted: AccessStore = {
    ...rig.on.store,
    change: (context, work) =>
      rig.on.store.change(context, (tx) =>
        work({
          ...tx,
          async find(kind, where) {
            const found = await tx.find(kind, where)
            records += found.length
            return found
          },
          async page(kind, request) {
            const page = await tx.page(kind, request)
            records += page.items.length
            return page
          },
        }),
      ),
  }
  const on = { ...rig.on, store: counted }
  const set = (destination: string) => setDestination(on, { subscription: 'last', destination, vouched: true })
  await assert.rejects(set('8.8.4.7:20001'), { code: 'already-exists' })
  await set('8.8.4.7:20002')
  assert.ok(records < 10, `${records} records were read`)
})
