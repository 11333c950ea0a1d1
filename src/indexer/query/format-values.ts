import type { ResponseColumn } from './declared-types.ts'

/** A column of an answer, as the formats need it. */
export type FormatColumn = {
  readonly name: string
  readonly nameJson: string
  /** ClickHouse's name of the type. */
  readonly type: string
}

/** A column while its values pass: its type depends on all of them. */
export type ColumnWatch = {
  readonly nameJson: string
  /** Whether CSV writes it without quotes. */
  readonly isBare: boolean
  see(value: unknown): void
  column(): FormatColumn
}

const TYPES: Readonly<Record<string, string>> = {
  UBIGINT: 'UInt64',
  BIGINT: 'Int64',
  UINTEGER: 'UInt32',
  INTEGER: 'Int32',
  USMALLINT: 'UInt16',
  SMALLINT: 'Int16',
  UTINYINT: 'UInt8',
  TINYINT: 'Int8',
  VARCHAR: 'String',
  BOOLEAN: 'Bool',
  DOUBLE: 'Float64',
  FLOAT: 'Float32',
  UHUGEINT: 'UInt128',
  TIMESTAMP_S: "DateTime('UTC')",
  TIMESTAMP: "DateTime64(6, 'UTC')",
  TIMESTAMP_MS: "DateTime64(3, 'UTC')",
  'TIMESTAMP WITH TIME ZONE': "DateTime64(6, 'UTC')",
  DATE: 'Date32',
  UUID: 'UUID',
  SQLNULL: 'Nothing',
  '"NULL"': 'Nothing',
}
const U64_MAX = 2n ** 64n - 1n
const I64_MIN = -(2n ** 63n)

/** A sum that fits is reported as 64 bits, and a column with a NULL is Nullable. */
export function watchColumn({ name, reported }: ResponseColumn, duckType: string): ColumnWatch {
  const nameJson = JSON.stringify(name)
  const isSum = reported === undefined && duckType === 'HUGEINT'
  const fixed = reported ?? baseType(duckType)
  let hasNull = false
  let isNegative = false
  let is128 = false
  return {
    nameJson,
    isBare: isSum || /^(U?Int|Float|Bool|Decimal)/.test(fixed),
    see(value) {
      if (value === null) hasNull = true
      else if (isSum && typeof value === 'bigint') {
        if (value < 0n) isNegative = true
        if (value > U64_MAX || value < I64_MIN) is128 = true
      }
    },
    column() {
      const type = !isSum ? fixed : is128 ? 'Int128' : isNegative ? 'Int64' : 'UInt64'
      return { name, nameJson, type: hasNull ? nullable(type) : type }
    },
  }
}

/** A column of words keeps its NULL inside. */
function nullable(type: string): string {
  return type === 'LowCardinality(String)' ? 'LowCardinality(Nullable(String))' : `Nullable(${type})`
}

function baseType(duckType: string): string {
  if (duckType.endsWith('[]')) return `Array(${baseType(duckType.slice(0, -2))})`
  if (duckType.startsWith('DECIMAL')) return duckType.replace('DECIMAL', 'Decimal').replace(',', ', ')
  return TYPES[duckType] ?? 'String'
}

export function toJson(value: unknown, quote64: boolean): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'number':
      // As ClickHouse: what JSON cannot say is null.
      return Number.isFinite(value) ? String(value) : 'null'
    case 'bigint':
      return quote64 ? `"${value}"` : String(value)
    case 'boolean':
      return value ? 'true' : 'false'
    default:
  }
  if (value === null || value === undefined) return 'null'
  const items = itemsOf(value)
  if (items !== undefined) return `[${items.map((item) => toJson(item, quote64)).join(',')}]`
  return JSON.stringify(textOf(value))
}

/** Times, dates and decimals of the engine's library print themselves. */
type Printed = { toString(): string }

/** As the text formats write it: times as `YYYY-MM-DD hh:mm:ss`, lists as `['a','b']`. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null) return String(value)
  const items = itemsOf(value)
  if (items !== undefined) return `[${items.map((item) => itemText(item)).join(',')}]`
  // The library writes a time zone after times that have one; here every time is UTC.
  return (value as Printed).toString().replace(/\+00$/, '')
}

function itemText(item: unknown): string {
  if (item === null) return 'NULL'
  const text = textOf(item)
  return typeof item === 'string' ? `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'` : text
}

function itemsOf(value: object): readonly unknown[] | undefined {
  return 'items' in value && Array.isArray(value.items) ? value.items : undefined
}
