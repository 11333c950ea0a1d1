import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { startPostgres } from '../../../test/support/machine/postgres.ts'
import { isFull } from '../../../test/support/process/property.ts'
import { insertRecords } from '../../../test/support/store/rows.ts'
import { createManualClock } from '../../core/clock.ts'
import { openPostgres } from '../../platform/db/postgres.ts'
import type { SqlDatabase } from '../../platform/db/sql.ts'
import { openSqlite } from '../../platform/db/sqlite.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { secureRandom } from '../../platform/process/random.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import type { Customer, Subscription } from './model.ts'
import { openStore, type StoreLocation } from './open.ts'
import type { AccessStore } from './store.ts'

const SUBSCRIPTIONS = isFull ? 100_000 : 10_000
const CUSTOMERS = SUBSCRIPTIONS / 10
const pad = (at: number) => String(at).padStart(6, '0')

const customers: Customer[] = Array.from({ length: CUSTOMERS }, (_, at) => ({
  id: `cus_${pad(at)}0000000000`,
  revision: 1,
  name: `customer-${pad(at)}`,
  contact: at === 77 ? 'Zoë "Z" O\'Neil 100%_!' : `ops${at}@Example.net`,
  state: 'active',
  createdAt: 0,
}))
/** Names in another order than ids and customers; the customer 5 has a tenth of all. */
const subscriptions: Subscription[] = Array.from({ length: SUBSCRIPTIONS }, (_, at) => ({
  id: `sub_${pad(at)}0000000000`,
  revision: 1,
  customerId: (customers[at % 10 === 0 ? 5 : at % CUSTOMERS] as Customer).id,
  name: `${(at * 7919) % 100}-service.${pad(at)}`,
  plan: 'starter',
  products: ['bundle'],
  overrides: {},
  state: at % 1000 === 1 ? 'suspended' : 'active',
  createdAt: 0,
  validUntil: null,
}))

async function fill(database: SqlDatabase): Promise<void> {
  await insertRecords(database, 'customers', customers)
  await insertRecords(database, 'subscriptions', subscriptions)
}

/** All pages, as a client reads them. */
async function collect(
  store: AccessStore,
  request: { limit: number; search?: string; customerId?: string; isSuspended?: boolean },
) {
  const names: string[] = []
  let cursor: string | undefined
  for (let pages = 0; pages < 2000; pages++) {
    const { items, next } = await store.page('subscriptions', {
      after: cursor,
      limit: request.limit,
      search: request.search,
      where: request.customerId === undefined ? {} : { customerId: request.customerId },
      isIncluded: request.isSuspended === true ? ({ state }) => state === 'suspended' : undefined,
    })
    assert.ok(items.length <= request.limit)
    names.push(...items.map(({ name }) => name))
    if (next === null) return names
    cursor = next
  }
  throw new Error('the pages do not end')
}

const sorted = (found: readonly Subscription[]) => found.map(({ name }) => name).toSorted()

async function checkPages(store: AccessStore): Promise<void> {
  const all = await collect(store, { limit: 1000 })
  assert.equal(all.length, SUBSCRIPTIONS)
  assert.deepEqual(all.toSorted(), sorted(subscriptions))

  const five = customers[5] as Customer
  const ofFive = await collect(store, { limit: 700, customerId: five.id })
  assert.deepEqual(ofFive.toSorted(), sorted(subscriptions.filter(({ customerId }) => customerId === five.id)))
  const suspended = await collect(store, { limit: 30, isSuspended: true })
  assert.deepEqual(suspended.toSorted(), sorted(subscriptions.filter(({ state }) => state === 'suspended')))

  for (const text of ['7-service.0001', '.099', 'nothing-has-this', 'SERVICE.000012', 'ice.00001']) {
    const found = await collect(store, { limit: 100, search: text })
    const expected = sorted(subscriptions.filter(({ name }) => name.includes(text.toLowerCase())))
    assert.deepEqual(found.toSorted(), expected, text)
  }
  const byId = await collect(store, { limit: 7, search: 'sub_00012' })
  assert.deepEqual(byId.toSorted(), sorted(subscriptions.filter(({ id }) => id.startsWith('sub_00012'))))
  // By the contact of the customer: few customers, and more than are looked up by an index.
  for (const [text, matches] of [
    ['zoë "z" o\'neil 100%_!', ({ id }: Customer) => id === customers[77]?.id],
    ['OPS12@', ({ contact }: Customer) => contact.startsWith('ops12@')],
    ['ops1', ({ contact }: Customer) => contact.startsWith('ops1')],
    ['@example.net', ({ contact }: Customer) => contact.endsWith('@Example.net')],
  ] as const) {
    const owners = new Set(customers.filter(matches).map(({ id }) => id))
    const found = await collect(store, { limit: 900, search: text })
    assert.deepEqual(found.toSorted(), sorted(subscriptions.filter(({ customerId }) => owners.has(customerId))), text)
  }
  const { items } = await store.page('customers', { limit: 10, search: '%' })
  assert.deepEqual(
    items.map(({ name }) => name),
    ['customer-000077'],
  )
  assert.equal((await store.subscriptionCounts([five.id])).get(five.id), ofFive.length)
}

const options = (folder: { file(name: string): string }, location: StoreLocation) => ({
  location,
  audit: { file: folder.file('audit.log'), mirror: 'test', toolVersion: '0' },
  check: 'quick' as const,
})
const deps = { clock: systemClock, random: secureRandom, log: silentLogger }

describe(`pages of ${SUBSCRIPTIONS} subscriptions`, () => {
  const folder = makeTestFolder()
  after(() => folder[Symbol.dispose]())

  test('on SQLite: every record once, searches find what they name', async () => {
    const location = { engine: 'sqlite', file: folder.file('access.db') } as const
    await using store = await openStore(options(folder, location), deps)
    {
      await using database = await openSqlite({ file: location.file }, { clock: createManualClock() })
      await fill(database)
    }
    await checkPages(store)
  })

  test('on PostgreSQL the same', async () => {
    await using server = await startPostgres()
    const location = { engine: 'postgres', url: server.url } as const
    await using store = await openStore(options(folder, location), deps)
    {
      await using database = await openPostgres(location, deps)
      await fill(database)
    }
    await checkPages(store)
  })
})
