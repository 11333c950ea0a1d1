import { asInt, duckType, type IntType, isNumber, isTime, nullable, type Type, typeName, zoneOf } from '../types.ts'
import { conditionSql, isAnyNullable, localSql, numberSql, plainSql, toText, type Value, value } from '../value.ts'
import { decimalSql } from './decimals.ts'
import { type CallArguments } from './definition.ts'
import { momentSql, withDigits } from './time/arguments.ts'

/** To another size of whole numbers: ClickHouse keeps the lower bits of a value that does not fit. */
export function resized(sql: string, from: IntType, to: IntType): string {
  const fits = from.isSigned === to.isSigned ? from.bits <= to.bits : !from.isSigned && from.bits < to.bits
  if (fits || to.bits > 64) return `CAST(${sql} AS ${duckType(to)})`
  const [range, half] = [2n ** BigInt(to.bits), to.isSigned ? 2n ** BigInt(to.bits - 1) : 0n]
  return `CAST(((CAST(${sql} AS HUGEINT) + ${half}) & ${range - 1n}) - ${half} AS ${duckType(to)})`
}

/** The engine also reads spaces and underscores. */
const FLOAT = '(?i)[+-]?((\\d+\\.?\\d*|\\.\\d+)(e[+-]?\\d+)?|inf(inity)?|nan)'

/** To a number: fractions are cut off as ClickHouse does, the engine would round. */
export function toNumber(given: Value, type: Type, cast: 'CAST' | 'TRY_CAST'): string {
  const isCut = asInt(type) !== undefined && (given.type.kind === 'float' || given.type.kind === 'decimal')
  if (isTime(given.type) && asInt(type) !== undefined)
    return given.type.kind === 'date'
      ? `CAST(date_diff('day', DATE '1970-01-01', ${given.sql}) AS ${duckType(type)})`
      : `CAST(trunc(epoch(CAST(${given.sql} AS TIMESTAMP))) AS ${duckType(type)})`
  if (isTime(given.type) && type.kind === 'float')
    return given.type.kind === 'date'
      ? `CAST(date_diff('day', DATE '1970-01-01', ${given.sql}) AS ${duckType(type)})`
      : `CAST(epoch(CAST(${given.sql} AS TIMESTAMP)) AS ${duckType(type)})`
  if (given.type.kind === 'string' && asInt(type) !== undefined && cast === 'TRY_CAST')
    return `(CASE WHEN regexp_full_match(${given.sql}, '[+-]?\\d+') THEN TRY_CAST(${given.sql} AS ${duckType(type)}) END)`
  if (given.type.kind === 'string' && type.kind === 'float' && cast === 'TRY_CAST')
    return `(CASE WHEN regexp_full_match(${given.sql}, '${FLOAT}') THEN TRY_CAST(${given.sql} AS ${duckType(type)}) END)`
  const [from, to] = [asInt(given.type), asInt(type)]
  if (from !== undefined && to !== undefined && to.bits <= 64) return resized(numberSql(given), from, to)
  // The engine would round a fraction; its error for another text has the code of ClickHouse.
  if (given.type.kind === 'string' && asInt(type) !== undefined)
    return `CAST(CASE WHEN regexp_full_match(${given.sql}, '[+-]?\\d+') THEN ${given.sql} ELSE 'x' || ${given.sql} END AS ${duckType(type)})`
  return `${cast}(${isCut ? `trunc(${plainSql(given)})` : plainSql(given)} AS ${duckType(type)})`
}

type MapType = Extract<Type, { kind: 'map' }>
const isUntyped = ({ kind }: Type): boolean => kind === 'unknown' || kind === 'nothing'
export const arrayDepth = (type: Type): number => (type.kind === 'array' ? arrayDepth(type.of) + 1 : 0)
/** Tuples inside of each other, also with other containers between them. */
const tupleDepth = (type: Type): number => {
  if (type.kind === 'tuple') return Math.max(0, ...type.items.map(tupleDepth)) + 1
  if (type.kind === 'map') return Math.max(tupleDepth(type.key), tupleDepth(type.value))
  return type.kind === 'array' ? tupleDepth(type.of) : 0
}

/** CAST(x AS T). */
export function castValue(given: Value, type: Type, fail: CallArguments['fail']): Value {
  if (type.kind === 'string')
    return given.type.kind === 'string'
      ? { ...given, type: given.isBytes === true ? { ...type, isBytes: true } : type }
      : value(toText(given), isAnyNullable([given]) ? nullable(type) : type)
  const isNullable = type.isNullable === true || given.type.isNullable === true
  const result = isNullable ? nullable(type) : type
  if (type.kind === 'bool')
    return value(given.type.kind === 'string' ? `CAST(${given.sql} AS BOOLEAN)` : conditionSql(given), result)
  if (type.kind === 'decimal') return value(decimalSql(given, type), result)
  if (isNumber(type)) return value(toNumber(given, type, 'CAST'), result)
  if (type.kind === 'date')
    return value(
      isTime(given.type) || given.type.kind === 'string'
        ? `CAST(${localSql(given)} AS DATE)`
        : `CAST(make_timestamp(CAST(${numberSql(given)} AS BIGINT) * 86400000000) AS DATE)`,
      result,
    )
  if (type.kind === 'datetime' || type.kind === 'datetime64') {
    const zone = type.zone ?? zoneOf(given.type)
    const time = momentSql(given, zone)
    const scaled =
      type.kind === 'datetime64' ? withDigits(time, type.scale, given.type) : `date_trunc('second', ${time})`
    return value(scaled, { ...result, zone } as Type)
  }
  if (type.kind === 'map' && given.type.kind === 'tuple' && given.type.items.every(({ kind }) => kind === 'array'))
    return value(
      `CAST(map(struct_extract(${given.sql}, '1'), struct_extract(${given.sql}, '2')) AS ${duckType(type)})`,
      result,
    )
  if (type.kind === 'array' && typeName(given.type) === typeName(type)) return given
  if (type.kind === 'tuple' && given.type.kind === 'tuple' && given.type.items.length === type.items.length) {
    // Computed once: it may be a subquery.
    const name = `t${tupleDepth(type)}_`
    const items = given.type.items.map((item, at) =>
      castValue(value(`struct_extract(${name}, '${at + 1}')`, item), type.items[at] as Type, fail),
    )
    const packed = items.map((each, at) => `"${at + 1}" := ${plainSql(each)}`).join(', ')
    const cast = `list_extract(list_transform([${given.sql}], lambda ${name}: struct_pack(${packed})), 1)`
    return value(cast, { ...result, items: items.map((each) => each.type) } as Type)
  }
  if (type.kind === 'map' && given.type.kind === 'map') {
    const [key, of] = (['key', 'value'] as const).map((part) => {
      const [from, to] =
        part === 'key' ? [(given.type as MapType).key, type.key] : [(given.type as MapType).value, type.value]
      return castValue(value(`struct_extract(m_, '${part}')`, from), to, fail)
    }) as [Value, Value]
    const entry = `struct_pack(key := ${plainSql(key)}, value := ${plainSql(of)})`
    return value(`map_from_entries(list_transform(map_entries(${given.sql}), lambda m_: ${entry}))`, result)
  }
  if (type.kind === 'array' && given.type.kind === 'array' && !isUntyped(given.type.of)) {
    // Arrays inside of arrays have parameters of their own.
    const name = `c${arrayDepth(type)}_`
    const element = castValue(value(name, given.type.of), type.of, fail)
    const of = hasBytes(element.type) ? element.type : type.of
    return value(`list_transform(${given.sql}, lambda ${name}: ${plainSql(element)})`, { ...result, of } as Type)
  }
  const isList = type.kind === 'array' && isNumber(type.of)
  if (given.type.kind === 'string' && type.kind !== 'uuid' && !isList)
    throw fail(`cannot convert ${typeName(given.type)} to ${typeName(type)}`)
  return value(`CAST(${plainSql(given)} AS ${duckType(type)})`, result)
}

function hasBytes(type: Type): boolean {
  return type.kind === 'array' ? hasBytes(type.of) : type.kind === 'string' && type.isBytes === true
}
