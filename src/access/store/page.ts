import { ServiceError } from '../../core/error.ts'
import type { SqlReader } from '../../platform/db/sql.ts'
import { createTimeSlices, type TimeSlices } from '../../platform/process/time-slices.ts'
import type { RecordKind, Records } from './model.ts'
import type { Rows, TableRows } from './rows.ts'
import { createSearch, listForIn, type Step } from './search.ts'
import { RECORD_TABLES } from './tables.ts'

/** A page of a list: the records after a name (of kinds that have none: after an id), in that order. */
export type PageRequest<K extends RecordKind> = {
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
}

export type Page<T> = {
  /** At most `limit`. May be fewer, even none, although more follow: a page reads a bounded number of records. */
  readonly items: readonly T[]
  /** The `after` of the next page; null at the end. */
  readonly next: string | null
}

/** Records that a page reads at once, in a few milliseconds, where some of them are left out. */
const BATCH_RECORDS = 500
/** Records that a page reads to find those that are included. */
export const PAGE_RECORDS_MAX = 200_000

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
  const isFiltered = request.isIncluded !== undefined
  const size = isFiltered ? BATCH_RECORDS : limit + 1
  const next =
    request.search === undefined
      ? createScan(on, rows, kind, request.where)
      : await createSearchOf(on, rows, kind, request, slices)
  const orderOf = (record: Records[K]) => String(record[orderField(kind) as keyof Records[K]])
  const items: Records[K][] = []
  let after = request.after ?? ''
  for (let read = 0; read < PAGE_RECORDS_MAX; read += size) {
    const step = await next(after, size)
    for (const record of step.records) {
      if (!isIncluded(record)) continue
      if (items.length === limit) return { items, next: orderOf(items.at(-1) as Records[K]) }
      items.push(record)
    }
    if (step.isLast) return { items, next: null }
    after = step.end
    if (slices.isSpent()) await slices.yield()
  }
  return { items, next: after }
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
  const list = listForIn(customerIds)
  const found = await on.rows(
    `SELECT customer_id, COUNT(*) FROM subscriptions WHERE customer_id IN ${list.sql} GROUP BY customer_id`,
    list.values,
  )
  return new Map(found.map(([id, count]) => [String(id), Number(count)]))
}

function orderField(kind: RecordKind): 'name' | 'id' {
  return (RECORD_TABLES[kind].columns as readonly string[]).includes('name') ? 'name' : 'id'
}

type Next<T> = (after: string, size: number) => Promise<Step<T>>

function createScan<K extends RecordKind>(
  on: SqlReader,
  rows: TableRows,
  kind: K,
  where: Partial<Records[K]> = {},
): Next<Records[K]> {
  const of = rows(RECORD_TABLES[kind]) as unknown as Rows<Records[K]>
  const order = orderField(kind)
  const { sql, values } = of.where(where)
  const condition = `${sql === '' ? 'WHERE' : `${sql} AND`} ${order} > ?`
  return async (after, size) => {
    const found = await on.rows(of.select(`${condition} ORDER BY ${order} LIMIT ?`), [...values, after, size])
    const records = found.map(of.decode)
    const last = records.at(-1)
    return {
      records,
      end: last === undefined ? after : String(last[order as keyof Records[K]]),
      isLast: records.length < size,
    }
  }
}

async function createSearchOf<K extends RecordKind>(
  on: SqlReader,
  rows: TableRows,
  kind: K,
  { search = '', where }: PageRequest<K>,
  slices: TimeSlices,
): Promise<Next<Records[K]>> {
  const made = createSearch(on, rows, search, slices)
  if (kind === 'customers') return made.customers as unknown as Next<Records[K]>
  if (kind === 'subscriptions') {
    const { customerId } = (where ?? {}) as Partial<Records['subscriptions']>
    return (await made.subscriptions(customerId)) as unknown as Next<Records[K]>
  }
  throw new ServiceError('invalid-value', `${kind} cannot be searched`)
}
