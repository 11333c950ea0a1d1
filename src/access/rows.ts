import { crc32 } from 'node:zlib'
import { ServiceError } from '../core/service-error.ts'
import type { SqlRow, SqlValue } from '../host/sql.ts'
import { type Column, columnDecoder, columnSql, encodeColumn, type ValuePool } from './columns.ts'
import type { AnyTable, Table } from './tables.ts'

/** Rows of one table: their statements, and the way between them and records. */
export type Rows<T> = {
  readonly table: Table<T>
  /** `SELECT` of all columns, `row_check` last, and the rest of the statement. */
  select(rest: string): string
  readonly insert: string
  /** Inserts a row, or replaces the one with the same key. */
  readonly upsert: string
  encode(record: T): SqlValue[]
  /** Fails with `store-corrupt` when the row does not match its check. */
  decode(row: SqlRow): T
  /** The checked row as text, for those who keep very many; `createUnpacker` has the way back. */
  pack(row: SqlRow): string
  /** Where a field stands in a row. */
  placeOf(field: keyof T & string): number
  isWhole(row: SqlRow): boolean
  /** The condition on some fields, and its values. */
  where(fields: Partial<T>): { sql: string; values: SqlValue[] }
}

/** How the store is named in an error, and what helps when it is damaged. */
export type StoreName = { readonly name: string; readonly restoreAdvice: string }

/** The rows of any table of one store. */
export type TableRows = <T>(table: Table<T>) => Rows<T>

export function createTableRows(store: StoreName): TableRows {
  const pool: ValuePool = new Map()
  const made = new Map<unknown, unknown>()
  return <T>(table: Table<T>) => {
    const rows = (made.get(table) as Rows<T> | undefined) ?? createRows(table, pool, store)
    made.set(table, rows)
    return rows
  }
}

function createRows<T>(table: Table<T>, pool: ValuePool, store: StoreName): Rows<T> {
  const fields = Object.keys(table.columns) as (keyof T & string)[]
  const columns = fields.map((field) => table.columns[field] as Column)
  const names = [...fields.map(columnName), 'row_check']
  const list = names.join(', ')
  const keyNames = table.key.map(columnName)
  const updates = names.filter((name) => !keyNames.includes(name)).map((name) => `${name} = excluded.${name}`)
  const insert = `INSERT INTO ${table.name} (${list}) VALUES (${names.map(() => '?').join(', ')})`
  const select = (rest: string) => `SELECT ${list} FROM ${table.name} ${rest}`
  const toRecord = createDecoder(table, pool)
  const damaged = (row: SqlRow) =>
    new ServiceError(
      'store-corrupt',
      `${store.name}: row ${String(row[0])} of table ${table.name} does not match its check`,
      {
        fields: { store: store.name, table: table.name },
        fix: store.restoreAdvice,
      },
    )
  const isWhole = (row: SqlRow) => row.at(-1) === rowCheck(table.name, row.slice(0, -1))

  return {
    table,
    select,
    insert,
    upsert: `${insert} ON CONFLICT (${keyNames.join(', ')}) DO UPDATE SET ${updates.join(', ')}`,
    encode(record) {
      const values = fields.map((field, at) => encodeColumn(columns[at] as Column, record[field]))
      return [...values, rowCheck(table.name, values)]
    },
    decode(row) {
      if (!isWhole(row)) throw damaged(row)
      return toRecord(row)
    },
    pack(row) {
      const text = JSON.stringify(row.slice(0, -1))
      if (row.at(-1) !== textCheck(table.name, text)) throw damaged(row)
      return text
    },
    placeOf: (field) => fields.indexOf(field),
    isWhole,
    where(wanted) {
      const values: SqlValue[] = []
      const conditions = Object.entries(wanted).map(([field, value]) => {
        const encoded = encodeColumn(table.columns[field as keyof T] as Column, value)
        if (encoded === null) return `${columnName(field)} IS NULL`
        values.push(encoded)
        return `${columnName(field)} = ?`
      })
      return { sql: conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`, values }
    },
  }
}

/** The statements that make a table and its indexes. */
export function createTable(table: AnyTable): string[] {
  const columns = Object.entries(table.columns).map(([field, column]) => `${columnName(field)} ${columnSql(column)}`)
  const key = table.key.map(columnName).join(', ')
  const index = (kind: string, fields: readonly string[]) => {
    const names = fields.map(columnName)
    return `CREATE ${kind} ${table.name}_by_${names.join('_')} ON ${table.name} (${names.join(', ')})`
  }
  return [
    `CREATE TABLE ${table.name} (${columns.join(', ')}, row_check BIGINT NOT NULL, PRIMARY KEY (${key}))`,
    ...(table.unique ?? []).map((field) => index('UNIQUE INDEX', [field])),
    ...(table.indexes ?? []).map((fields) => index('INDEX', fields)),
  ]
}

/** `customerId` in a record is `customer_id` in a table. */
export function columnName(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** CRC-32 finds every change of up to 32 neighbouring bits. It starts from the name, so that a row cannot pass for one of another table. */
export function rowCheck(table: string, values: readonly SqlValue[]): number {
  return textCheck(table, JSON.stringify(values))
}

function textCheck(table: string, text: string): number {
  return crc32(text, crc32(table))
}

/** Makes records of what `pack` gave. */
export function createUnpacker<T>(table: Table<T>): (text: string) => T {
  const toRecord = createDecoder(table, new Map())
  return (text) => toRecord(JSON.parse(text) as SqlRow)
}

function createDecoder<T>(table: Table<T>, pool: ValuePool): (row: SqlRow) => T {
  const fields = Object.keys(table.columns)
  const decoders = fields.map((field) => columnDecoder(table.columns[field as keyof T] as Column, pool))
  return (row) => {
    const record: Record<string, unknown> = {}
    for (let at = 0; at < fields.length; at++) record[fields[at] as string] = decoders[at]?.(row[at] as SqlValue)
    return record as T
  }
}
