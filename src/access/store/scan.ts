import type { SqlReader } from '../../platform/db/sql.ts'
import { allOf, type Condition } from './condition.ts'
import type { RecordKind, Records } from './model.ts'
import type { Rows, TableRows } from './rows.ts'
import { RECORD_TABLES } from './tables.ts'

/** A step through a list: the records found, and whether none follow. `end` is where the next step begins. */
export type Step<T> = {
  readonly records: readonly T[]
  readonly end: string
  readonly isLast: boolean
  /** What it has cost, in rows compared by the database. */
  readonly work: number
}

/** The first records after a name, at most `size` of them. */
export type Scan<T> = (after: string, size: number) => Promise<Step<T>>

/** What decoding a record costs, in rows compared by the database. */
export const DECODED_WORK = 8
/** Rows that one statement compares, and what each costs: SQLite is read in the thread that calls, so a statement takes a few milliseconds. */
export const ROW_COSTS = {
  /** Only what is in the index of names. */
  names: { sliceRows: 20_000, work: 0.2 },
  /** The same, compared with a list of names too. */
  listedNames: { sliceRows: 10_000, work: 0.5 },
  content: { sliceRows: 6000, work: 1 },
  /** With a row of another table. */
  joined: { sliceRows: 2000, work: 5 },
} as const
/** Slices of a remote database are larger by this factor, but the first: its statements hold no event loop here, and each costs a round trip. */
const REMOTE_SLICES = 20

/** Rows that one statement compares. Where the first slice has enough records, a remote database need not look for the end of a large one. */
function sliceRowsOf(
  { isRemote }: SqlReader,
  { sliceRows }: { readonly sliceRows: number },
  { isFirst }: { readonly isFirst: boolean },
): number {
  return isRemote && !isFirst ? sliceRows * REMOTE_SLICES : sliceRows
}

export type ScanRequest<T> = {
  /** Equality of fields with an index. */
  readonly where?: Partial<T> | undefined
  /** Compared in slices, between which the caller lets the event loop run: however few rows match, no statement is long. */
  readonly condition?: Condition | undefined
  readonly cost?: (typeof ROW_COSTS)[keyof typeof ROW_COSTS] | undefined
  readonly order?: 'id' | undefined
  /** Every statement on a remote database compares all customers: it begins with a large slice. */
  readonly isLargeAtOnce?: boolean | undefined
}

/** Lists are in the order of names; those of kinds that have none, of ids. */
export function orderOf(kind: RecordKind): 'name' | 'id' {
  return (RECORD_TABLES[kind].columns as readonly string[]).includes('name') ? 'name' : 'id'
}

export function createScan<K extends RecordKind>(
  on: SqlReader,
  rows: TableRows,
  kind: K,
  given: ScanRequest<Records[K]>,
): Scan<Records[K]> {
  const of = rows(RECORD_TABLES[kind]) as unknown as Rows<Records[K]>
  const { where = {}, cost = ROW_COSTS.content, order = orderOf(kind) } = given
  const { sql, values } = of.where(where)
  const equal = sql === '' ? undefined : { sql: sql.slice('WHERE '.length), values }
  let isFirst = given.isLargeAtOnce !== true
  const isByIndex = order === orderOf(kind)
  const indexed = isByIndex ? equal : undefined
  // The index of another field is not in the order of ids. As a part of an expression the field is compared row by row, in slices.
  const compared =
    isByIndex || equal === undefined ? undefined : { ...equal, sql: equal.sql.replaceAll(' =', " || '' =") }
  const condition = allOf([compared, given.condition])
  const nameOf = (record: Records[K]) => String(record[order as keyof Records[K]])

  async function read(conditions: readonly (Condition | undefined)[], size: number): Promise<Records[K][]> {
    const all = allOf(conditions)
    const found = await on.rows(of.select(`WHERE ${all?.sql} ORDER BY ${order} LIMIT ?`), [
      ...(all?.values ?? []),
      size,
    ])
    return found.map(of.decode)
  }

  return async (after, size) => {
    const from = { sql: `${order} > ?`, values: [after] }
    if (condition === undefined) {
      const records = await read([indexed, from], size)
      const last = records.at(-1)
      const work = records.length * DECODED_WORK
      return { records, end: last === undefined ? after : nameOf(last), isLast: records.length < size, work }
    }
    const sliceRows = sliceRowsOf(on, cost, { isFirst })
    isFirst = false
    const end = await endOfSlice(on, of.table.name, order, { conditions: [indexed, from], rows: sliceRows })
    const until = end === undefined ? undefined : { sql: `${order} <= ?`, values: [end] }
    const records = await read([indexed, from, until, condition], size)
    const last = records.at(-1)
    const isCut = last !== undefined && records.length === size
    return {
      records,
      end: isCut ? nameOf(last) : (end ?? after),
      isLast: !isCut && end === undefined,
      work: records.length * DECODED_WORK + sliceRows * cost.work,
    }
  }
}

/** The name of the last of so many rows; undefined where fewer follow. Read from the index of names. */
export async function endOfSlice(
  on: SqlReader,
  table: string,
  order: 'name' | 'id',
  { conditions, rows }: { readonly conditions: readonly (Condition | undefined)[]; readonly rows: number },
): Promise<string | undefined> {
  const all = allOf(conditions)
  const statement = `SELECT ${order} FROM ${table} WHERE ${all?.sql} ORDER BY ${order} LIMIT 1 OFFSET ?`
  const [row] = await on.rows(statement, [...(all?.values ?? []), rows - 1])
  return row === undefined ? undefined : String(row[0])
}
