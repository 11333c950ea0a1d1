import { duckType, isNumber, plain, supertype, type Type, UNKNOWN } from '../types.ts'
import { convert, numberSql, toText, type Value, value } from '../value.ts'
import { comparable } from './values.ts'

/** The two sides of IN in one type, so that no value is converted to a type that has it not. */

/** Whether a list has a value; numbers are compared in a type that has both. */
export function listContains(list: Value, of: Value): string {
  const item = list.type.kind === 'array' ? list.type.of : UNKNOWN
  const type = isNumber(item) && isNumber(of.type) ? supertype([plain(item), plain(of.type)]) : undefined
  if (type === undefined || duckType(type) === duckType(item)) return `list_contains(${list.sql}, ${convert(of, item)})`
  return `list_contains(CAST(${list.sql} AS ${duckType(type)}[]), CAST(${numberSql(of)} AS ${duckType(type)}))`
}

/** A tuple and the columns of a subquery as structs of one type. */
export function sameTuples(tuple: string, items: readonly Type[], found: readonly Value[]): readonly [string, string] {
  const pack = (parts: readonly string[]): string =>
    `struct_pack(${parts.map((part, at) => `"${at + 1}" := ${part}`).join(', ')})`
  const type: Type = { kind: 'tuple', items: found.map((each) => each.type) }
  if (duckType({ kind: 'tuple', items }) === duckType(type)) return [tuple, pack(found.map(({ sql }) => sql))]
  const pairs = found.map((each, at) =>
    sameElement(value(`struct_extract(${tuple}, '${at + 1}')`, items[at] as Type), each),
  )
  return [pack(pairs.map(([a]) => a)), pack(pairs.map(([, b]) => b))]
}

/** ClickHouse converts the set to the types of the left side; a value that cannot be converted is not found. */
function sameElement(a: Value, b: Value): readonly [string, string] {
  const [x, y] = [a.type, b.type]
  if (x.kind === 'string' && isNumber(y))
    return a.isBytes === true ? [a.sql, `encode(${toText(b)})`] : [a.sql, toText(b)]
  if (isNumber(x) && y.kind === 'string') {
    const text = b.isBytes === true ? `decode(${b.sql})` : b.sql
    return [numberSql(a), `TRY_CAST(${text} AS ${duckType(x)})`]
  }
  if (!isNumber(x) || !isNumber(y)) return comparable(a, b)
  const type = supertype([plain(x), plain(y)])
  const shared = type === undefined ? 'HUGEINT' : duckType(type.kind === 'decimal' ? { ...type, precision: 38 } : type)
  return [`CAST(${numberSql(a)} AS ${shared})`, `CAST(${numberSql(b)} AS ${shared})`]
}
