import { ServiceError } from '../../core/error.ts'
import type { SqlReader } from '../../platform/db/sql.ts'
import { createTimeSlices, type TimeSlices } from '../../platform/process/time-slices.ts'
import { allOf, type Condition, contentCondition, type Having, listForIn } from './condition.ts'
import type { Customer, RecordKind, Records } from './model.ts'
import type { Rows, TableRows } from './rows.ts'
import { createScan, orderOf, type Scan } from './scan.ts'
import { ofCustomers, searchCustomers, searchSubscriptions } from './search.ts'
import { RECORD_TABLES } from './tables.ts'

/** A page of a list: the records after a name (of kinds that have none: after an id), in that order. */
export type PageRequest<K extends RecordKind> = {
  /** `id` also for kinds that have names, except in a search. Ids never change, so that such pages have every record once, whatever is renamed meanwhile. */
  readonly order?: 'id' | undefined
  readonly after?: string | undefined
  readonly limit: number
  /** Fields with an index, such as `customerId`. */
  readonly where?: Partial<Records[K]> | undefined
  /**
   * Customers whose name or contact contains the text, or whose id begins with it; subscriptions whose name contains it, whose id begins with it, or
   * whose customer matches. Letters of ASCII match in both cases.
   */
  readonly search?: string | undefined
  /** Records for which it is false are left out. */
  readonly isIncluded?: ((record: Records[K]) => boolean) | undefined
  /** What the fields of every included record are, so that the database leaves out most of the others: `isIncluded` still decides. */
  readonly having?: Having<Records[K]> | undefined
  /** For subscriptions: conditions on the fields of their customers. */
  readonly ofCustomers?: Having<Customer> | undefined
}

export type Page<T> = {
  /** At most `limit`. May be fewer, even none, although more follow: the work of a page is bounded. */
  readonly items: readonly T[]
  /** The `after` of the next page; null at the end. */
  readonly next: string | null
}

/** Records that a page reads at once, in a few milliseconds, where some of them are left out. */
const BATCH_RECORDS = 500
/** Work of a page, in rows that the database compares, about a microsecond each: one that has not found enough by then ends. */
const PAGE_WORK_MAX = 160_000

/** Reads one page. Every statement is short, and between them the event loop runs: SQLite is read in the thread that calls. */
export async function readPage<K extends RecordKind>(
  on: SqlReader,
  rows: TableRows,
  kind: K,
  request: PageRequest<K>,
): Promise<Page<Records[K]>> {
  const { limit, isIncluded = () => true } = request
  if (!Number.isSafeInteger(limit) || limit < 1)
    throw new ServiceError('invalid-value', 'a page has at least one record')
  const slices = createTimeSlices()
  const next = await createScanOf({ on, rows, slices }, kind, request)
  const order = request.order ?? orderOf(kind)
  const nameOf = (record: Records[K]) => String(record[order as keyof Records[K]])
  const items: Records[K][] = []
  let after = request.after ?? ''
  let size = limit + 1
  for (let work = 0; work < PAGE_WORK_MAX; ) {
    const step = await next(after, size)
    for (const record of step.records) {
      if (!isIncluded(record)) continue
      if (items.length === limit) return { items, next: nameOf(items.at(-1) as Records[K]) }
      items.push(record)
    }
    if (step.isLast) return { items, next: null }
    after = step.end
    work += step.work
    size = BATCH_RECORDS
    if (slices.isSpent()) await slices.yield()
  }
  return { items, next: after }
}

/** Keys of one statement. */
const KEYS_MAX = 512

/** Reads the rows of many keys, in slices. */
export async function readRowsOf<T>(keys: Iterable<string>, read: (list: Condition) => Promise<T[]>): Promise<T[]> {
  const all = [...new Set(keys)]
  const slices = createTimeSlices()
  const found: T[] = []
  for (let from = 0; from < all.length; from += KEYS_MAX) {
    found.push(...(await read(listForIn(all.slice(from, from + KEYS_MAX)))))
    if (slices.isSpent()) await slices.yield()
  }
  return found
}

export async function readAll<K extends RecordKind>(
  on: SqlReader,
  rows: TableRows,
  kind: K,
  ids: Iterable<string>,
): Promise<Map<string, Records[K]>> {
  const of = rows(RECORD_TABLES[kind]) as unknown as Rows<Records[K]>
  const found = await readRowsOf(ids, async (list) =>
    (await on.rows(of.select(`WHERE id IN ${list.sql}`), list.values)).map(of.decode),
  )
  return new Map(found.map((record) => [record.id, record]))
}

/** Names in order, for suggestions. */
export async function readNames(
  on: SqlReader,
  kind: RecordKind,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<string[]> {
  const { name } = RECORD_TABLES[kind]
  const found = await on.rows(`SELECT name FROM ${name} WHERE name > ? ORDER BY name LIMIT ?`, [after, limit])
  return found.map(([each]) => String(each))
}

/** From the index of customers alone. */
export async function countSubscriptions(on: SqlReader, customerIds: readonly string[]): Promise<Map<string, number>> {
  const found = await readRowsOf(customerIds, (list) =>
    on.rows(
      `SELECT customer_id, COUNT(*) FROM subscriptions WHERE customer_id IN ${list.sql} GROUP BY customer_id`,
      list.values,
    ),
  )
  return new Map(found.map(([id, count]) => [String(id), Number(count)]))
}

type ScanDeps = { readonly on: SqlReader; readonly rows: TableRows; readonly slices: TimeSlices }

async function createScanOf<K extends RecordKind>(
  deps: ScanDeps,
  kind: K,
  { search, where, having, order, ofCustomers: owners }: PageRequest<K>,
): Promise<Scan<Records[K]>> {
  if (search === undefined) {
    const { condition: ofOwner, cost } = owners === undefined ? {} : await ofCustomers(deps, owners)
    const condition = allOf([ofOwner, contentCondition(RECORD_TABLES[kind], having)])
    return createScan(deps.on, deps.rows, kind, { where, condition, cost, order })
  }
  if (kind === 'customers') return searchCustomers(deps, search, having) as unknown as Scan<Records[K]>
  if (kind === 'subscriptions') {
    const { customerId } = (where ?? {}) as Partial<Records['subscriptions']>
    return (await searchSubscriptions(deps, search, { customerId, having })) as unknown as Scan<Records[K]>
  }
  throw new ServiceError('invalid-value', `${kind} cannot be searched`)
}
