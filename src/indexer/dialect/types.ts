import { QueryError } from '../query/error.ts'
import { shownName } from '../query/sql-tokens.ts'

/** A type of ClickHouse. `unknown` is the type of an expression that only the embedded engine knows. */
export type Type = (
  | { readonly kind: 'int'; readonly bits: number; readonly isSigned: boolean }
  | { readonly kind: 'float'; readonly bits: number }
  | { readonly kind: 'bool' }
  /** With `isBytes` a BLOB of the engine, whose texts must be UTF-8. */
  | { readonly kind: 'string'; readonly isBytes?: boolean }
  | { readonly kind: 'date' }
  | { readonly kind: 'datetime'; readonly zone?: string | undefined }
  | { readonly kind: 'datetime64'; readonly scale: number; readonly zone?: string | undefined }
  | { readonly kind: 'decimal'; readonly precision: number; readonly scale: number }
  | { readonly kind: 'array'; readonly of: Type }
  | { readonly kind: 'tuple'; readonly items: readonly Type[]; readonly names?: readonly string[] | undefined }
  | { readonly kind: 'map'; readonly key: Type; readonly value: Type }
  | { readonly kind: 'interval'; readonly unit: string }
  | { readonly kind: 'uuid' }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'unknown' }
) & {
  readonly isNullable?: boolean
  readonly isLowCardinality?: boolean
}

export type IntType = Extract<Type, { kind: 'int' }>

export const int = (bits: number, isSigned: boolean): Type => ({ kind: 'int', bits, isSigned })
export const UINT8: Type = int(8, false)
export const UINT16: Type = int(16, false)
export const UINT32: Type = int(32, false)
export const UINT64: Type = int(64, false)
export const INT64: Type = int(64, true)
export const FLOAT64: Type = { kind: 'float', bits: 64 }
export const FLOAT32: Type = { kind: 'float', bits: 32 }
export const STRING: Type = { kind: 'string' }
/** A String of any bytes. */
export const BYTES: Type = { kind: 'string', isBytes: true }
export const BOOL: Type = { kind: 'bool' }
export const DATE: Type = { kind: 'date' }
export const DATETIME: Type = { kind: 'datetime' }
export const UNKNOWN: Type = { kind: 'unknown' }
export const NOTHING: Type = { kind: 'nothing', isNullable: true }
export const arrayOf = (of: Type): Type => ({ kind: 'array', of })
export const tupleOf = (items: readonly Type[]): Type => ({ kind: 'tuple', items })

/** Arrays, tuples and maps have no NULL in ClickHouse. */
export function nullable(type: Type): Type {
  const isContainer = type.kind === 'array' || type.kind === 'tuple' || type.kind === 'map'
  return type.isNullable === true || isContainer ? type : { ...type, isNullable: true }
}

export function notNull(type: Type): Type {
  return type.isNullable === true ? { ...type, isNullable: false } : type
}

/** Without LowCardinality, inside of containers too: functions compute with plain values. */
export function plain(type: Type): Type {
  const bare: Type = type.isLowCardinality === true ? { ...type, isLowCardinality: false } : type
  return bare.kind === 'array' ? { ...bare, of: plain(bare.of) } : bare
}

export function typeName(type: Type): string {
  const inner = type.isNullable === true ? `Nullable(${bareName(type)})` : bareName(type)
  return type.isLowCardinality === true ? `LowCardinality(${inner})` : inner
}

function bareName(type: Type): string {
  switch (type.kind) {
    case 'int':
      return `${type.isSigned ? '' : 'U'}Int${type.bits}`
    case 'float':
      return `Float${type.bits}`
    case 'bool':
      return 'Bool'
    case 'date':
      return 'Date'
    case 'datetime':
      return type.zone === undefined ? 'DateTime' : `DateTime('${type.zone}')`
    case 'datetime64':
      return `DateTime64(${type.scale}${type.zone === undefined ? '' : `, '${type.zone}'`})`
    case 'decimal':
      return `Decimal(${type.precision}, ${type.scale})`
    case 'array':
      return `Array(${typeName(type.of)})`
    case 'tuple':
      return `Tuple(${type.items.map((item, at) => (type.names === undefined ? '' : `${type.names[at]} `) + typeName(item)).join(', ')})`
    case 'map':
      return `Map(${typeName(type.key)}, ${typeName(type.value)})`
    case 'interval':
      return `Interval${type.unit}`
    case 'uuid':
      return 'UUID'
    case 'nothing':
      return 'Nothing'
    default:
      return 'String'
  }
}

const DUCK_INTS: Readonly<Record<number, string>> = {
  8: 'TINYINT',
  16: 'SMALLINT',
  32: 'INTEGER',
  64: 'BIGINT',
  128: 'HUGEINT',
}

/** The type that values of a ClickHouse type have in the embedded engine. */
export function duckType(type: Type): string {
  switch (type.kind) {
    case 'int':
      return `${type.isSigned ? '' : 'U'}${DUCK_INTS[type.bits] ?? 'HUGEINT'}`
    case 'float':
      return type.bits === 32 ? 'FLOAT' : 'DOUBLE'
    case 'bool':
      return 'BOOLEAN'
    case 'date':
      return 'DATE'
    case 'datetime':
      return 'TIMESTAMP_S'
    case 'datetime64':
      return 'TIMESTAMP'
    case 'decimal':
      return `DECIMAL(${Math.min(type.precision, 38)}, ${type.scale})`
    case 'array':
      return `${duckType(type.of)}[]`
    case 'tuple':
      return `STRUCT(${type.items.map((item, at) => `"${at + 1}" ${duckType(item)}`).join(', ')})`
    case 'map':
      return `MAP(${duckType(type.key)}, ${duckType(type.value)})`
    case 'interval':
      return 'INTERVAL'
    case 'uuid':
      return 'UUID'
    case 'nothing':
      return 'INTEGER'
    case 'string':
      return type.isBytes === true ? 'BLOB' : 'VARCHAR'
    default:
      return 'VARCHAR'
  }
}

/** The value that ClickHouse uses where there is none: an empty text, a zero, the first day. */
export function defaultOf(type: Type): string {
  if (type.isNullable === true) return 'NULL'
  switch (type.kind) {
    case 'string':
      return type.isBytes === true ? "encode('')" : "''"
    case 'bool':
      return 'false'
    case 'date':
      return "DATE '1970-01-01'"
    case 'datetime':
    case 'datetime64':
      return "TIMESTAMP '1970-01-01 00:00:00'"
    case 'array':
      return `CAST([] AS ${duckType(type)})`
    case 'tuple':
      return `struct_pack(${type.items.map((item, at) => `"${at + 1}" := ${defaultOf(item)}`).join(', ')})`
    case 'map':
      return `CAST(map([], []) AS ${duckType(type)})`
    case 'int':
    case 'float':
    case 'decimal':
      return `CAST(0 AS ${duckType(type)})`
    default:
      return 'NULL'
  }
}

export function isNumber(type: Type): boolean {
  return type.kind === 'int' || type.kind === 'float' || type.kind === 'decimal' || type.kind === 'bool'
}

export function isTime(type: Type): boolean {
  return type.kind === 'date' || type.kind === 'datetime' || type.kind === 'datetime64'
}

/** Bool counts as UInt8 in arithmetic. */
export function asInt(type: Type): IntType | undefined {
  if (type.kind === 'bool') return { kind: 'int', bits: 8, isSigned: false }
  return type.kind === 'int' ? type : undefined
}

/** The smallest type to which all values can be converted; undefined where ClickHouse has none. */
export function supertype(types: readonly Type[]): Type | undefined {
  const given = types.filter(({ kind }) => kind !== 'nothing')
  const isNullable = types.some((type) => type.isNullable === true)
  const [first] = given
  if (first === undefined) return NOTHING
  let result: Type | undefined = first
  for (const type of given.slice(1)) result = result === undefined ? undefined : common(result, type)
  if (result === undefined) return undefined
  return isNullable ? nullable(result) : notNull(result)
}

function common(a: Type, b: Type): Type | undefined {
  if (a.kind === 'unknown' || b.kind === 'unknown') return UNKNOWN
  const isLowCardinality = a.isLowCardinality === true && b.isLowCardinality === true
  if (a.kind === 'string' && b.kind === 'string') {
    const text = isLowCardinality ? a : plain(a)
    return a.isBytes === true || b.isBytes === true ? { ...text, ...BYTES } : text
  }
  if (a.kind === 'bool' && b.kind === 'bool') return BOOL
  if (isNumber(a) && isNumber(b)) return commonNumber(a, b)
  if (isTime(a) && isTime(b)) return commonTime(a, b)
  if (a.kind === 'array' && b.kind === 'array') {
    const of = supertype([a.of, b.of])
    return of === undefined ? undefined : arrayOf(of)
  }
  if (a.kind === 'tuple' && b.kind === 'tuple' && a.items.length === b.items.length) {
    const items = a.items.map((item, at) => supertype([item, b.items[at] as Type]))
    return items.includes(undefined) ? undefined : { ...a, items: items as Type[] }
  }
  return typeName(notNull(a)) === typeName(notNull(b)) ? a : undefined
}

function commonNumber(a: Type, b: Type): Type | undefined {
  const [x, y] = [asInt(a), asInt(b)]
  if (a.kind === 'decimal' || b.kind === 'decimal') {
    if (a.kind === 'float' || b.kind === 'float') return FLOAT64
    const [p, q] = [decimalOf(a), decimalOf(b)]
    return { kind: 'decimal', precision: Math.max(p.precision, q.precision), scale: Math.max(p.scale, q.scale) }
  }
  if (x === undefined || y === undefined) {
    const isSmall = [a, b].every((type) => (type.kind === 'float' ? type.bits === 32 : (asInt(type)?.bits ?? 64) <= 16))
    return isSmall ? FLOAT32 : FLOAT64
  }
  if (x.isSigned === y.isSigned) return int(Math.max(x.bits, y.bits), x.isSigned)
  const [signed, unsigned] = x.isSigned ? [x, y] : [y, x]
  if (signed.bits > unsigned.bits) return int(signed.bits, true)
  const bits = unsigned.bits * 2
  return bits > 64 ? undefined : int(bits, true)
}

export function decimalOf(type: Type): { readonly precision: number; readonly scale: number } {
  if (type.kind === 'decimal') return type
  return { precision: (asInt(type)?.bits ?? 64) > 32 ? 18 : 9, scale: 0 }
}

function commonTime(a: Type, b: Type): Type {
  const zone = zoneOf(a) ?? zoneOf(b)
  const scale = Math.max(scaleOf(a), scaleOf(b))
  if (a.kind === 'datetime64' || b.kind === 'datetime64') return { kind: 'datetime64', scale, zone }
  return a.kind === 'datetime' || b.kind === 'datetime' ? { kind: 'datetime', zone } : DATE
}

function scaleOf(type: Type): number {
  return type.kind === 'datetime64' ? type.scale : 0
}

export function zoneOf(type: Type): string | undefined {
  return type.kind === 'datetime' || type.kind === 'datetime64' ? type.zone : undefined
}

/** Whether it is a time whose zone is that of the session, or contains one. */
export function isZoneless(type: Type): boolean {
  switch (type.kind) {
    case 'datetime':
    case 'datetime64':
      return type.zone === undefined
    case 'array':
      return isZoneless(type.of)
    default:
      return false
  }
}

export function unknownType(name: string): QueryError {
  return new QueryError(
    'UNKNOWN_TYPE',
    `Unknown type ${shownName(name)}; the types offered are listed in docs/schema.md.`,
  )
}

const sizes = new WeakMap<Type, number>()

/** Elements of the tuples in a type, at least 1. Each tuple is counted once: one of tuples of tuples can be larger than its statement by far. */
export function typeSize(type: Type): number {
  if (type.kind === 'array') return typeSize(type.of)
  if (type.kind === 'map') return typeSize(type.key) + typeSize(type.value) - 1
  if (type.kind !== 'tuple') return 1
  const known = sizes.get(type)
  if (known !== undefined) return known
  const size = type.items.reduce((sum, item) => sum + typeSize(item), 1)
  sizes.set(type, size)
  return size
}
