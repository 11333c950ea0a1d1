import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { startPostgres } from '../../../test/support/machine/postgres.ts'
import { createRandom, seedsOf } from '../../../test/support/process/property.ts'
import { STORE_DEPS } from '../../../test/support/store/engines.ts'
import { insertRecords } from '../../../test/support/store/rows.ts'
import { openPostgres } from '../../platform/db/postgres.ts'
import type { SqlDatabase, SqlReader } from '../../platform/db/sql.ts'
import { openSqlite } from '../../platform/db/sqlite.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { endsWithin } from '../ending.ts'
import type { Customer, Subscription } from './model.ts'
import { openStore, type StoreLocation } from './open.ts'
import { type PageRequest, readPage } from './page.ts'
import { createTableRows } from './rows.ts'

const REQUESTS = { short: 25, full: 500 }
/** More than the database gets as a list of customers, and than one statement compares. */
const CUSTOMERS = 4000
const SUBSCRIPTIONS = 7000
const PAGES_MAX = 7100
const NOW_MS = Date.UTC(2027, 0, 1)
const DAY_MS = 86_400_000

const random = createRandom(1)
const pick = <T>(values: readonly T[]): T => values[random(values.length)] as T
const id = (prefix: string) =>
  `${prefix}_${Array.from({ length: 16 }, () => pick('0123456789abcdefgh'.split(''))).join('')}`

/** Few have the rare contact, two thirds the common one. Texts of the JSON around a contact, and of states, are in some. */
const customers: Customer[] = Array.from({ length: CUSTOMERS }, (_, at) => ({
  id: id('cus'),
  revision: at + 1,
  name: `${pick(['north', 'south', 'active'])}-${at}`,
  contact:
    at % 500 === 0
      ? 'Rare "R" 100%_!,","'
      : at % 3 === 0
        ? ''
        : pick(['Shared@Example.net', 'é,"active",9@example.net\nbreak']),
  state: pick(['active', 'active', 'active', 'suspended', 'removed']),
  createdAt: NOW_MS,
}))
const subscriptions: Subscription[] = Array.from({ length: SUBSCRIPTIONS }, (_, at) => ({
  id: id('sub'),
  revision: at + 1,
  customerId: (customers[random(10) === 0 ? 7 : random(CUSTOMERS)] as Customer).id,
  name: `${random(100)}.${pick(['rpc', 'suspended', 'sub_x'])}-${at}`,
  // A plan may have the name of a state.
  plan: pick(['starter', 'suspended', 'active']),
  products: ['bundle'],
  overrides: {},
  state: pick(['active', 'active', 'active', 'suspended', 'cancelled']),
  // Not a time that a filter names: a condition on the last field must not match by this one.
  createdAt: Date.UTC(2020, 0, 1),
  validUntil: pick([null, NOW_MS, NOW_MS - 1, NOW_MS + 1, NOW_MS + random(30) * DAY_MS, 5, 20_000_000_000_000]),
}))
const ownerOf = new Map(customers.map((customer) => [customer.id, customer]))
const TEXTS = [
  'north-1',
  'SHARED',
  'rare "r"',
  '100%_!',
  ',","',
  'active',
  'é',
  '7.',
  'sub_',
  'sub_00',
  'cus_0a',
  '","',
  // In the JSON of a contact, but not in the contact.
  'nbreak',
]

type Filter = { readonly request: Partial<PageRequest<'subscriptions'>>; isIncluded(record: Subscription): boolean }

function filterOf(below: (limit: number) => number): Filter {
  const spanMs = (1 + below(20)) * DAY_MS
  const filters: readonly Filter[] = [
    { request: {}, isIncluded: () => true },
    { request: { having: { state: ['cancelled'] } }, isIncluded: ({ state }) => state === 'cancelled' },
    { request: { having: { plan: ['active', 'suspended'] } }, isIncluded: ({ plan }) => plan !== 'starter' },
    {
      request: { having: { state: ['active'], validUntil: { above: NOW_MS, upTo: NOW_MS + spanMs } } },
      isIncluded: (record) => endsWithin(record, ownerOf.get(record.customerId), { nowMs: NOW_MS, spanMs }),
    },
    {
      request: { having: { validUntil: { upTo: NOW_MS } } },
      isIncluded: ({ validUntil }) => validUntil !== null && validUntil <= NOW_MS,
    },
    {
      request: { having: { validUntil: { upTo: 7 } } },
      isIncluded: ({ validUntil }) => validUntil === 5,
    },
    ...(['suspended', 'removed', 'active'] as const).map((state) => ({
      request: { ofCustomers: { state: [state] } },
      isIncluded: ({ customerId }: Subscription) => ownerOf.get(customerId)?.state === state,
    })),
  ]
  return filters[below(filters.length)] as Filter
}

const lower = (text: string) => text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
const isCustomerFound = ({ name, contact, id: own }: Customer, text: string) =>
  name.includes(text) || lower(contact).includes(text) || (text.length >= 6 && own.startsWith(text))

function isFound({ name, id: own, customerId }: Subscription, search: string, ofCustomer: boolean): boolean {
  const text = lower(search)
  if (name.includes(text) || (text.length >= 6 && own.startsWith(text))) return true
  return !ofCustomer && isCustomerFound(ownerOf.get(customerId) as Customer, text)
}

/** Counts the rows that statements return. */
function counting(on: SqlReader): { readonly on: SqlReader; rowsRead(): number } {
  let count = 0
  return {
    on: {
      ...on,
      async rows(sql, values) {
        const found = await on.rows(sql, values)
        count += found.length
        return found
      },
    },
    rowsRead: () => count,
  }
}

async function checkRequests(database: SqlDatabase, seeds: readonly number[]): Promise<void> {
  const rows = createTableRows(database)
  for (const seed of seeds) {
    const below = createRandom(seed)
    const filter = filterOf(below)
    const customerId = below(4) === 0 ? (customers[below(2) === 0 ? 7 : below(CUSTOMERS)] as Customer).id : undefined
    const search = below(4) === 0 ? undefined : TEXTS[seed % TEXTS.length]
    const limit = 1 + below(1000)
    const title = `SLUICE_SEEDS=${seed}-${seed}: ${JSON.stringify({ ...filter.request, customerId, search, limit })}`
    const expected = subscriptions
      .filter((record) => customerId === undefined || record.customerId === customerId)
      .filter((record) => search === undefined || isFound(record, search, customerId !== undefined))
      .filter(filter.isIncluded)
      .map(({ name }) => name)
      .toSorted()
    const found: string[] = []
    let cursor: string | undefined
    for (let pages = 0; ; pages++) {
      assert.ok(pages < PAGES_MAX, `${title}: the pages do not end`)
      const where = customerId === undefined ? {} : { customerId }
      const request = { ...filter.request, after: cursor, limit, where, search, isIncluded: filter.isIncluded }
      const { items, next } = await readPage(database, rows, 'subscriptions', request)
      assert.ok(items.length <= limit, title)
      found.push(...items.map(({ name }) => name))
      if (next === null) break
      cursor = next
    }
    assert.deepEqual(found, expected, title)
    const named = await readPage(database, rows, 'customers', {
      search: search ?? 'é',
      limit: CUSTOMERS,
      having: { state: ['active'] },
      isIncluded: ({ state }) => state === 'active',
    })
    const matching = customers.filter((each) => each.state === 'active' && isCustomerFound(each, lower(search ?? 'é')))
    assert.deepEqual(
      named.items.map(({ name }) => name),
      matching.map(({ name }) => name).toSorted(),
      title,
    )
  }
}

/** A page returns few rows to this process, where it finds few: it does not decode the others. */
async function checkRowsRead(database: SqlDatabase): Promise<void> {
  const rows = createTableRows(database)
  for (const [request, rowsMax] of [
    [{ having: { state: ['gone'] }, isIncluded: () => false }, 10],
    [
      { having: { validUntil: { above: NOW_MS + 40 * DAY_MS, upTo: NOW_MS + 50 * DAY_MS } }, isIncluded: () => false },
      10,
    ],
    [{ ofCustomers: { state: ['gone'] }, isIncluded: () => false }, 10],
    [{ search: 'nothing-has-this' }, 20],
    // More customers than are given as a list, and few of their subscriptions have the plan.
    [{ search: 'example.net', having: { plan: ['gone'] }, isIncluded: () => false }, 2100],
  ] as const) {
    const { on, rowsRead } = counting(database)
    const { items, next } = await readPage(on, rows, 'subscriptions', { limit: 100, ...request })
    assert.deepEqual({ items: items.length, next }, { items: 0, next: null }, JSON.stringify(request))
    assert.ok(rowsRead() <= rowsMax, `${JSON.stringify(request)}: ${rowsRead()} rows`)
  }
}

describe('pages are those of a plain list', () => {
  const folder = makeTestFolder()
  after(() => folder[Symbol.dispose]())

  async function prepare(location: StoreLocation, name: string): Promise<void> {
    const audit = { file: folder.file(`${name}.log`), mirror: 'test', toolVersion: '0' }
    await (await openStore({ location, audit, check: 'quick' }, STORE_DEPS))[Symbol.asyncDispose]()
  }

  async function check(database: SqlDatabase, seeds: readonly number[]): Promise<void> {
    await insertRecords(database, 'customers', customers)
    await insertRecords(database, 'subscriptions', subscriptions)
    await checkRowsRead(database)
    await checkRequests(database, seeds)
  }

  test('on SQLite, for random filters, searches and limits', async (t) => {
    const location = { engine: 'sqlite', file: folder.file('access.db') } as const
    await prepare(location, 'sqlite')
    await using database = await openSqlite(location, STORE_DEPS)
    await check(database, seedsOf(t, REQUESTS))
  })

  test('on PostgreSQL the same', async (t) => {
    await using server = await startPostgres()
    const location = { engine: 'postgres', url: server.url } as const
    await prepare(location, 'postgres')
    await using database = await openPostgres(location, STORE_DEPS)
    await check(database, seedsOf(t, REQUESTS))
  })
})
