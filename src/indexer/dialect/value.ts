import { QueryError } from '../query/error.ts'
import { duckType, isTime, STRING, type Type, typeName, UINT8, zoneOf } from './types.ts'

/** An expression in the SQL of the embedded engine, with the type that it has in ClickHouse. */
export type Value = {
  readonly sql: string
  readonly type: Type
  /** The expression is a BOOLEAN of the engine, and UInt8 in ClickHouse. */
  readonly isCondition?: boolean
  /** A condition for rows that match, where NULL counts as false: one comparison, by which the engine can join. */
  readonly matchSql?: string | undefined
  /** The expression is a BLOB of the engine, and String in ClickHouse: as its type has it. */
  readonly isBytes?: boolean
  /** The value, where the statement itself gives it. */
  readonly constant?: string | number | bigint | boolean | null | undefined
  readonly isConstant?: boolean
  /** A lambda: the value of its body for values of its parameters. */
  readonly lambda?: ((parameters: readonly Value[]) => Value) | undefined
  readonly lambdaNames?: readonly string[] | undefined
}

export function value(sql: string, type: Type): Value {
  return type.kind === 'string' && type.isBytes === true ? { sql, type, isBytes: true } : { sql, type }
}

/** A BOOLEAN of the engine, reported as UInt8. */
export function condition(sql: string, isNullable = false): Value {
  return { sql, type: isNullable ? { ...UINT8, isNullable: true } : UINT8, isCondition: true }
}

export function quoteText(text: string): string {
  if (text.includes('\0'))
    throw new QueryError('SYNTAX_ERROR', 'Syntax error: a NUL character in quotes; give it as a parameter.')
  if (!text.isWellFormed())
    throw new QueryError('SYNTAX_ERROR', "Syntax error: bytes in quotes that are not UTF-8; write them as unhex('…').")
  return `'${text.replaceAll("'", "''")}'`
}

export function quoteName(name: string): string {
  if (name.includes('\0')) throw new QueryError('SYNTAX_ERROR', 'Syntax error: a NUL character in quotes.')
  return `"${name.replaceAll('"', '""')}"`
}

/** The value as its type has it in the engine: conditions become numbers, bytes stay bytes. */
export function plainSql({ sql, isCondition }: Value): string {
  return isCondition === true ? `CAST(${sql} AS UTINYINT)` : sql
}

/** The value as a number of the engine. */
export function numberSql(given: Value): string {
  return given.type.kind === 'bool' && given.isCondition !== true ? `CAST(${given.sql} AS UTINYINT)` : plainSql(given)
}

/** The value as a BOOLEAN of the engine. */
export function conditionSql(given: Value): string {
  if (given.isCondition === true || given.type.kind === 'bool' || given.type.kind === 'unknown') return given.sql
  if (given.type.kind === 'nothing') return 'CAST(NULL AS BOOLEAN)'
  if (given.type.kind === 'int' || given.type.kind === 'float' || given.type.kind === 'decimal')
    return `(${given.sql} <> 0)`
  throw new QueryError('TYPE_MISMATCH', `A condition has the type ${typeName(given.type)}; it must be a number.`)
}

/** The value as a text, byte strings as bytes. */
function textSql(given: Value): string {
  if (given.type.kind === 'string' || given.type.kind === 'unknown') return given.sql
  return toText(given)
}

/** The value as BLOB of the engine. */
export function bytesSql(given: Value): string {
  return given.isBytes === true ? given.sql : `encode(${textSql(given)})`
}

/** The value printed as toString() of ClickHouse prints it. */
export function toText(given: Value): string {
  const { type, sql } = given
  switch (type.kind) {
    case 'string':
      // The engine would print bytes as `\xFF`; it has no text that is not UTF-8.
      return type.isBytes === true ? `decode(${sql})` : sql
    case 'date':
      return `strftime(${sql}, '%Y-%m-%d')`
    case 'datetime':
      return `strftime(${localSql(given)}, '%Y-%m-%d %H:%M:%S')`
    case 'datetime64': {
      const whole = `strftime(${localSql(given)}, '%Y-%m-%d %H:%M:%S.%f')`
      return type.scale === 0 ? `left(${whole}, 19)` : type.scale >= 6 ? whole : `left(${whole}, ${20 + type.scale})`
    }
    case 'float':
      return floatText(sql)
    case 'decimal':
      return `regexp_replace(regexp_replace(CAST(${sql} AS VARCHAR), '(\\.\\d*?)0+$', '\\1'), '\\.$', '')`
    case 'array':
    case 'tuple':
    case 'map':
      return containerText(given, type)
    default:
      return `CAST(${plainSql(given)} AS VARCHAR)`
  }
}

/** The elements of a container, texts and times in quotes. */
function containerText({ sql }: Value, type: Container): string {
  // Containers inside of each other have elements of their own.
  const name = `e${containerDepth(type)}_`
  if (type.kind === 'tuple') {
    // Computed once: it may be a subquery.
    const parts = type.items.map((item, at) => quotedInside(value(`struct_extract(${name}, '${at + 1}')`, item)))
    const text = `concat('(', ${parts.length === 0 ? "''" : parts.join(", ',', ")}, ')')`
    return `list_extract(list_transform([${sql}], lambda ${name}: ${text}), 1)`
  }
  if (type.kind === 'array')
    return `concat('[', array_to_string(list_transform(${sql}, lambda ${name}: ${quotedInside(value(name, type.of))}), ','), ']')`
  const [key, of] = [
    value(`struct_extract(${name}, 'key')`, type.key),
    value(`struct_extract(${name}, 'value')`, type.value),
  ]
  const entries = `list_transform(map_entries(${sql}), lambda ${name}: concat(${quotedInside(key)}, ':', ${quotedInside(of)}))`
  return `concat('{', array_to_string(${entries}, ','), '}')`
}

type Container = Extract<Type, { kind: 'array' | 'tuple' | 'map' }>

function containerDepth(type: Type): number {
  if (type.kind === 'array') return containerDepth(type.of) + 1
  if (type.kind === 'map') return Math.max(containerDepth(type.key), containerDepth(type.value)) + 1
  return type.kind === 'tuple' ? Math.max(0, ...type.items.map(containerDepth)) + 1 : 0
}

/** Numbers from 1e-6 up to 1e21 are written without an exponent. */
function floatText(sql: string): string {
  const exponent = "CAST(regexp_extract(t_, 'e(.*)', 1) AS INTEGER)"
  const digits = "regexp_replace(replace(regexp_extract(t_, '^-?([0-9.]+)', 1), '.', ''), '0+$', '')"
  const sign = "regexp_extract(t_, '^-?')"
  const small = `${sign} || '0.' || lpad('', CAST(-1 - ${exponent} AS INTEGER), '0') || ${digits}`
  const large = `${sign} || rpad(${digits}, CAST(1 + ${exponent} AS INTEGER), '0')`
  const other = `regexp_replace(t_, 'e.*', '') || 'e' || ${exponent}`
  const written = `CASE WHEN ${exponent} BETWEEN -6 AND -1 THEN ${small} WHEN ${exponent} BETWEEN 0 AND 20 THEN ${large} ELSE ${other} END`
  return `list_extract(list_transform([CAST(${sql} AS VARCHAR)], lambda t_: CASE WHEN strpos(t_, 'e') > 0 THEN ${written} WHEN t_ = '-nan' THEN 'nan' ELSE regexp_replace(t_, '\\.0$', '') END), 1)`
}

/** Characters that are escaped inside of quotes, the backslash first, each with the letter after the backslash. */
const ESCAPED: readonly (readonly [char: string, letter: string])[] = [
  ...['\\', "'"].map((char) => [char, char] as const),
  ...Object.entries({ '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't', '\0': '0' }),
]

/** An element of a container as it stands in the text of the container. */
function quotedInside(item: Value): string {
  const { kind, isNullable } = item.type
  if (kind === 'nothing') return "'NULL'"
  const escape = (sql: string, [char, letter]: readonly [string, string]): string =>
    `replace(${sql}, chr(${char.charCodeAt(0)}), ${quoteText(`\\${letter}`)})`
  const text = kind === 'string' ? ESCAPED.reduce(escape, toText(item)) : toText(item)
  const sql = kind === 'string' || kind === 'uuid' || isTime(item.type) ? `concat('''', ${text}, '''')` : text
  return isNullable === true ? `(CASE WHEN ${item.sql} IS NULL THEN 'NULL' ELSE ${sql} END)` : sql
}

/** The time of day and date in the time zone of the type; times of the engine are UTC. */
export function localSql({ sql, type }: Value): string {
  const zone = zoneOf(type)
  return zone === undefined || zone === 'UTC'
    ? sql
    : `timezone(${quoteText(zone)}, timezone('UTC', CAST(${sql} AS TIMESTAMP)))`
}

/** From the time in a zone to UTC. */
export function utcSql(local: string, zone: string | undefined): string {
  return zone === undefined || zone === 'UTC'
    ? local
    : `timezone('UTC', timezone(${quoteText(zone)}, CAST(${local} AS TIMESTAMP)))`
}

const OWN_OFFSET = /:\d{2}(\.\d+)?(Z|[+-]\d{2}(:?\d{2})?)$/

/** A text of a time as a moment: of the zone, unless the text ends with an offset. The engine would leave that out. */
export function textMoment(given: Value, zone: string | undefined): string {
  const sql = plainSql(given)
  const own = `timezone('UTC', CAST(${sql} AS TIMESTAMP WITH TIME ZONE))`
  const local = utcSql(`CAST(${sql} AS TIMESTAMP)`, zone)
  const text = constantText(given)
  if (text !== undefined) return OWN_OFFSET.test(text) ? own : local
  return `(CASE WHEN regexp_matches(${sql}, '${OWN_OFFSET.source}') THEN ${own} ELSE ${local} END)`
}

/** Converts to a type of which the value is known to be convertible: numbers to wider numbers, texts of times to times. */
export function convert(given: Value, type: Type): string {
  if (type.kind === 'unknown' || given.type.kind === 'unknown') return plainSql(given)
  if (given.type.kind === 'nothing') return `CAST(NULL AS ${duckType(type)})`
  if (
    typeName({ ...given.type, isNullable: false }) === typeName({ ...type, isNullable: false }) &&
    given.isCondition !== true &&
    duckType(given.type) === duckType(type)
  )
    return given.sql
  if (given.type.kind === 'string' && type.kind === 'string') return type.isBytes === true ? bytesSql(given) : given.sql
  // Before a cast to bytes the engine would read `\x41` in a text as one byte.
  if (given.type.kind === 'array' && type.kind === 'array' && duckType(type).includes('BLOB'))
    return `list_transform(${given.sql}, lambda e_: ${convert(value('e_', given.type.of), type.of)})`
  if (given.type.kind === 'tuple' && type.kind === 'tuple' && duckType(type).includes('BLOB')) {
    const items = given.type.items.map((item, at) => {
      const element = value(`struct_extract(${given.sql}, '${at + 1}')`, item)
      return `"${at + 1}" := ${convert(element, type.items[at] as Type)}`
    })
    return `struct_pack(${items.join(', ')})`
  }
  if (isTime(given.type) && isTime(type) && given.type.kind !== 'date' && type.kind !== 'date') return given.sql
  if (given.type.kind === 'date' && zoneOf(type) !== undefined)
    return utcSql(`CAST(${given.sql} AS TIMESTAMP)`, zoneOf(type))
  return `CAST(${plainSql(given)} AS ${duckType(type)})`
}

/** An unsigned or signed number constant, or undefined. */
export function constantNumber(given: Value | undefined): number | undefined {
  const { constant } = given ?? {}
  return typeof constant === 'number' ? constant : typeof constant === 'bigint' ? Number(constant) : undefined
}

export function constantText(given: Value | undefined): string | undefined {
  return typeof given?.constant === 'string' ? given.constant : undefined
}

export function textConstant(text: string): Value {
  return { sql: quoteText(text), type: STRING, constant: text, isConstant: true }
}

export function isAnyNullable(values: readonly Value[]): boolean {
  return values.some(({ type }) => type.isNullable === true || type.kind === 'unknown')
}
