import type { AnswerColumn } from './told-types.ts'

/** A column of an answer, as the formats need it. */
export type FormatColumn = {
  readonly name: string
  readonly nameJson: string
  /** ClickHouse's name of the type. */
  readonly type: string
  /** Whether JSON quotes it unless told otherwise: numbers beyond 2^53 would be changed by a reader. */
  readonly isWide: boolean
  /** Whether CSV writes it without quotes. */
  readonly isBare: boolean
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
const WIDE = new Set(['UInt64', 'Int64', 'UInt128', 'Int128'])
const U64_MAX = 2n ** 64n - 1n
const I64_MIN = -(2n ** 63n)

/** `values` is looked through only where the type depends on it: a sum that fits is told as 64 bits, and a column with a NULL is Nullable. */
export function clickhouseType(
  { name, told }: AnswerColumn,
  duckType: string,
  values: () => Iterable<unknown>,
): FormatColumn {
  const plain = told ?? (duckType === 'HUGEINT' ? narrowed(values()) : baseType(duckType))
  const hasNull = Iterator.from(values()).some((value) => value === null)
  return {
    name,
    nameJson: JSON.stringify(name),
    type: hasNull ? nullable(plain) : plain,
    isWide: WIDE.has(plain),
    isBare: /^(U?Int|Float|Bool|Decimal)/.test(plain),
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

function narrowed(values: Iterable<unknown>): string {
  let isUnsigned = true
  for (const value of values) {
    if (typeof value !== 'bigint') continue
    if (value > U64_MAX || value < I64_MIN) return 'Int128'
    if (value < 0n) isUnsigned = false
  }
  return isUnsigned ? 'UInt64' : 'Int64'
}

export function toJson(value: unknown, column: FormatColumn, quote64: boolean): string {
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
  if (items !== undefined) return `[${items.map((item) => toJson(item, column, quote64)).join(',')}]`
  return JSON.stringify(textOf(value, column))
}

/** Times, dates and decimals of the engine's library print themselves. */
type Printed = { toString(): string }

/** As the text formats write it: times as `YYYY-MM-DD hh:mm:ss`, lists as `['a','b']`. */
export function textOf(value: unknown, column: FormatColumn): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null) return String(value)
  const items = itemsOf(value)
  if (items !== undefined) return `[${items.map((item) => itemText(item, column)).join(',')}]`
  // The library writes a time zone after times that have one; here every time is UTC.
  return (value as Printed).toString().replace(/\+00$/, '')
}

function itemText(item: unknown, column: FormatColumn): string {
  if (item === null) return 'NULL'
  const text = textOf(item, column)
  return typeof item === 'string' ? `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'` : text
}

function itemsOf(value: object): readonly unknown[] | undefined {
  return 'items' in value && Array.isArray(value.items) ? value.items : undefined
}
