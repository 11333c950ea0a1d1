import { crc32 } from 'node:zlib'
import { ServiceError } from '../../core/error.ts'
import type { SqlRow, SqlValue, SqlWriter } from '../../platform/db/sql.ts'
import { checkField, type Field } from './fields.ts'
import type { AnyTable, Table } from './tables.ts'

/** The statements of one table, and the conversion between its rows and records. */
export type Rows<T> = {
  readonly table: Table<T>
  readonly insert: string
  /** Inserts a row, or replaces the one with the same key. */
  readonly upsert: string
  /** The same for several rows, each with a key of its own. */
  insertOf(rows: number): string
  upsertOf(rows: number): string
  /** The values of a row for `insert` and `upsert`. */
  encode(record: T): SqlValue[]
  /** `SELECT` of the columns for `decode`, followed by `rest`. */
  select(rest: string): string
  /** Throws `store-corrupt` when the row does not match its check. */
  decode(row: SqlRow): T
  /** `SELECT` of one column and the columns for `decode`, followed by `rest`. */
  selectPacked(by: keyof T & string, rest: string): string
  /** The value of that column and the checked text of the record, for `createUnpacker`. */
  pack(row: SqlRow): { key: string; text: string }
  /** `SELECT` of all rows for `matchesCheck`. */
  readonly selectAll: string
  /** Whether content, `row_check` and columns agree. */
  matchesCheck(row: SqlRow): boolean
  /** The condition on some columns, and its values. */
  where(fields: Partial<T>): { sql: string; values: SqlValue[] }
}

/** The name of the store in errors, and the advice for a damaged store. */
export type StoreName = { readonly name: string; readonly restoreAdvice: string }

/** A larger record is refused. At three bytes per character it still fits a chunk of `snapshot/text-log.ts`. */
const RECORD_CHARS_MAX = 64 * 1024

/** The rows of any table of one store. */
export type TableRows = <T>(table: Table<T>) => Rows<T>

export function createTableRows(store: StoreName): TableRows {
  const made = new Map<unknown, unknown>()
  return <T>(table: Table<T>) => {
    const rows = (made.get(table) as Rows<T> | undefined) ?? createRows(table, store)
    made.set(table, rows)
    return rows
  }
}

function createRows<T>(table: Table<T>, store: StoreName): Rows<T> {
  const { name } = table
  const fields = Object.entries(table.fields) as [keyof T & string, Field][]
  const columns = [...table.columns.map(columnName), 'content', 'row_check']
  const list = columns.join(', ')
  const updates = columns
    .filter((column) => column !== columnName(table.key))
    .map((column) => `${column} = excluded.${column}`)
  const values = `(${columns.map(() => '?').join(', ')})`
  const replace = `ON CONFLICT (${columnName(table.key)}) DO UPDATE SET ${updates.join(', ')}`
  const insertOf = (rows: number) => `INSERT INTO ${name} (${list}) VALUES ${Array(rows).fill(values).join(', ')}`
  const upsertOf = (rows: number) => `${insertOf(rows)} ${replace}`
  const unpack = createUnpacker(table)

  function encode(record: T): SqlValue[] {
    const text = JSON.stringify(fields.map(([field, kind]) => checkField(kind, field, record[field])))
    if (text.length > RECORD_CHARS_MAX) throw new ServiceError('invalid-value', `a record of ${name} is too large`)
    return [...table.columns.map((column) => record[column] as SqlValue), text, textCheck(name, text)]
  }

  function checked(text: SqlValue | undefined, check: SqlValue | undefined): string {
    if (typeof text === 'string' && check === textCheck(name, text)) return text
    throw new ServiceError('store-corrupt', `${store.name}: a row of table ${name} does not match its check`, {
      fields: { store: store.name, table: name },
      fix: store.restoreAdvice,
    })
  }

  return {
    table,
    insert: insertOf(1),
    upsert: upsertOf(1),
    insertOf,
    upsertOf,
    encode,
    select: (rest) => `SELECT content, row_check FROM ${name} ${rest}`,
    decode: ([text, check]) => unpack(checked(text, check)),
    selectPacked: (by, rest) => `SELECT ${columnName(by)}, content, row_check FROM ${name} ${rest}`,
    pack: ([key, text, check]) => ({ key: String(key), text: checked(text, check) }),
    selectAll: `SELECT ${list} FROM ${name}`,
    matchesCheck(row) {
      const [text, check] = row.slice(-2)
      if (typeof text !== 'string' || check !== textCheck(name, text)) return false
      const record = unpack(text)
      return table.columns.every((column, at) => record[column] === row[at])
    },
    where(wanted) {
      const values: SqlValue[] = []
      const conditions = Object.entries(wanted).map(([field, value]) => {
        checkField(table.fields[field as keyof T], field, value)
        if (value === null) return `${columnName(field)} IS NULL`
        values.push(value as SqlValue)
        return `${columnName(field)} = ?`
      })
      return { sql: conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`, values }
    },
  }
}

/** Records of one statement. Each has a few values: far below the limits of the engines. */
const RECORDS_PER_STATEMENT = 100

/** Writes many records, each with a key of its own, in few statements: at a database on another machine each one is a round trip. */
export async function writeRecords<T>(
  tx: SqlWriter,
  { encode }: Pick<Rows<T>, 'encode'>,
  records: readonly T[],
  statementOf: (rows: number) => string,
): Promise<void> {
  for (let from = 0; from < records.length; from += RECORDS_PER_STATEMENT) {
    const some = records.slice(from, from + RECORDS_PER_STATEMENT)
    await tx.run(statementOf(some.length), some.flatMap(encode))
  }
}

/** Decodes records from their text. */
export function createUnpacker<T>(table: Table<T>): (text: string) => T {
  const fields = Object.keys(table.fields)
  return (text) => {
    const values = JSON.parse(text) as unknown[]
    const record: Record<string, unknown> = {}
    for (let at = 0; at < fields.length; at++) record[fields[at] as string] = values[at]
    return record as T
  }
}

/** CRC-32 detects every change within 32 adjacent bits. It starts with the table name, so that a row is not valid in another table. */
export function textCheck(table: string, text: string): number {
  return crc32(text, crc32(table))
}

/** The statements that create a table and its indexes. */
export function createTable({ name, fields, columns, key, unique = [], indexes = [] }: AnyTable): string[] {
  const typed = columns.map((column) => `${columnName(column)} ${SQL_TYPES[fields[column] as Field]}`)
  const index = (kind: string, on: readonly string[]) => {
    const names = on.map(columnName)
    return `CREATE ${kind} ${name}_by_${names.join('_')} ON ${name} (${names.join(', ')})`
  }
  return [
    `CREATE TABLE ${name} (${typed.join(', ')}, content TEXT NOT NULL, row_check BIGINT NOT NULL, PRIMARY KEY (${columnName(key)}))`,
    ...unique.map((field) => index('UNIQUE INDEX', [field])),
    ...indexes.map((on) => index('INDEX', on)),
  ]
}

const SQL_TYPES: Readonly<Partial<Record<Field, string>>> = {
  text: 'TEXT NOT NULL',
  'text?': 'TEXT',
  integer: 'BIGINT NOT NULL',
  'integer?': 'BIGINT',
}

/** `customerId` in a record is `customer_id` in a table. */
export function columnName(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
