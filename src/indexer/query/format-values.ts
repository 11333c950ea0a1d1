/** A column of a result: its name, and its ClickHouse type where the engine's own type does not give it. */
export type ResultColumn = { readonly name: string; readonly reported?: string | undefined }

/** A column as the formats write it. */
export type FormatColumn = {
  readonly name: string
  readonly nameJson: string
  /** ClickHouse's name for the type. */
  readonly type: string
}

/** Observes the values of a column, because its ClickHouse type depends on all of them. */
export type ColumnObserver = {
  readonly nameJson: string
  /** Whether CSV writes its values without quotes. */
  readonly isUnquoted: boolean
  observe(value: unknown): void
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

/** A sum that fits into 64 bits is reported as 64 bits, and a column with a NULL is Nullable. */
export function observeColumn({ name, reported }: ResultColumn, duckType: string): ColumnObserver {
  const nameJson = JSON.stringify(name)
  const isSum = reported === undefined && duckType === 'HUGEINT'
  const fixed = reported ?? baseType(duckType)
  let hasNull = false
  let isNegative = false
  let is128 = false
  return {
    nameJson,
    isUnquoted: isSum || /^(U?Int|Float|Bool|Decimal)/.test(fixed),
    observe(value) {
      if (value === null) hasNull = true
      else if (isSum && typeof value === 'bigint') {
        if (value < 0n) isNegative = true
        if (value > U64_MAX || value < I64_MIN) is128 = true
      }
    },
    column() {
      const type = !isSum ? fixed : is128 ? 'Int128' : isNegative ? 'Int64' : 'UInt64'
      return { name, nameJson, type: hasNull && reported === undefined ? nullable(type) : type }
    },
  }
}

/** ClickHouse writes LowCardinality(Nullable), not Nullable(LowCardinality). */
function nullable(type: string): string {
  return type === 'LowCardinality(String)' ? 'LowCardinality(Nullable(String))' : `Nullable(${type})`
}

function baseType(duckType: string): string {
  if (duckType.endsWith('[]')) return `Array(${baseType(duckType.slice(0, -2))})`
  if (duckType.startsWith('DECIMAL')) return duckType.replace('DECIMAL', 'Decimal').replace(',', ', ')
  return TYPES[duckType] ?? 'String'
}

/** Digits of the second that a type prints, where the engine's library prints as few as possible. */
function scaleOf(type: string): number | undefined {
  const found = /^(?:Nullable\()?DateTime64\((\d)/.exec(type)
  return found === null ? undefined : Number(found[1])
}

/** A value of which the text depends on the ClickHouse type: times with a fraction. Every other value is returned as it is. */
export function typedValue(value: unknown, type: string): unknown {
  const scale = scaleOf(type)
  if (scale === undefined || typeof value !== 'object' || value === null) return value
  const [whole = '', fraction = ''] = textOf(value).split('.')
  return scale === 0 ? whole : `${whole}.${fraction.padEnd(scale, '0').slice(0, scale)}`
}

export function toJson(value: unknown, quote64: boolean): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'number':
      // As ClickHouse does: numbers that JSON does not have are null.
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
  const entries = entriesOf(value)
  if (entries !== undefined)
    return `{${entries.map((entry) => `${JSON.stringify(textOf(entry.key))}:${toJson(entry.value, quote64)}`).join(',')}}`
  return isDecimal(value) ? decimalText(value) : JSON.stringify(textOf(value))
}

/** Times, dates and decimals of the engine's library. */
type Printed = { toString(): string }

/** A value in the text formats: times as `YYYY-MM-DD hh:mm:ss`, lists as `['a','b']`. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null) return String(value)
  const items = itemsOf(value)
  if (items !== undefined) {
    const list = items.map((item) => itemText(item)).join(',')
    return isTuple(value) ? `(${list})` : `[${list}]`
  }
  const entries = entriesOf(value)
  if (entries !== undefined)
    return `{${entries.map((entry) => `${itemText(entry.key)}:${itemText(entry.value)}`).join(',')}}`
  if (isDecimal(value)) return decimalText(value)
  // The library appends the time zone to times that have one; here every time is UTC.
  return (value as Printed).toString().replace(/\+00$/, '')
}

function itemText(item: unknown): string {
  if (item === null) return 'NULL'
  const text = textOf(item)
  return typeof item === 'string' ? `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'` : text
}

/** Elements of a list, or of a tuple: the engine names the fields of a tuple 1, 2 and so on. */
function itemsOf(value: object): readonly unknown[] | undefined {
  if ('items' in value && Array.isArray(value.items)) return value.items
  return isTuple(value) ? Object.values(value.entries) : undefined
}

function isTuple(value: object): value is { readonly entries: object } {
  return (
    'entries' in value && typeof value.entries === 'object' && value.entries !== null && !Array.isArray(value.entries)
  )
}

type MapEntry = { readonly key: unknown; readonly value: unknown }

function entriesOf(value: object): readonly MapEntry[] | undefined {
  return 'entries' in value && Array.isArray(value.entries) ? (value.entries as MapEntry[]) : undefined
}

type Decimal = Printed & { readonly scale: number }

function isDecimal(value: object): value is Decimal {
  return 'scale' in value && 'width' in value
}

/** As ClickHouse does: without zeros at the end. */
function decimalText(value: Decimal): string {
  const text = value.toString()
  if (!text.includes('.')) return text
  let end = text.length
  while (text[end - 1] === '0') end--
  return text.slice(0, text[end - 1] === '.' ? end - 1 : end)
}
