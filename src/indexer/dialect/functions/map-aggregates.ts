import { arrayOf, asInt, duckType, int, isNumber, notNull, plain, type Type } from '../types.ts'
import { constantNumber, numberSql, plainSql, type Value, value } from '../value.ts'
import { type AggregateDefinition, type AggregateInput, defineAggregate } from './aggregates.ts'
import { bound } from './definition.ts'
import { ofFewReads } from './list-length.ts'

/** Aggregates by key: of maps, of pairs of arrays, and of weighted values. */

/** All entries as one list of structs with the fields key and value, and the types of both. */
function entriesOf(input: AggregateInput): { readonly sql: string; readonly key: Type; readonly of: Type } {
  const [first, second] = input.args
  if (first?.type.kind === 'map' && second === undefined)
    return {
      sql: `flatten(coalesce(${input.engine('list', `map_entries(${first.sql})`)}, []))`,
      key: first.type.key,
      of: first.type.value,
    }
  if (first?.type.kind === 'array' && second?.type.kind === 'array') {
    const pairs = `list_transform(range(1, len(${first.sql}) + 1), lambda i_: struct_pack(key := list_extract(${first.sql}, i_), value := list_extract(${second.sql}, i_)))`
    return {
      sql: `flatten(coalesce(${input.engine('list', pairs)}, []))`,
      key: plain(first.type.of),
      of: plain(second.type.of),
    }
  }
  throw input.wrongType('takes a map, or an array of keys and one of values')
}

const KEY = "struct_extract(e_, 'key')"
const valuesOf = (entries: string): string =>
  `list_transform(list_filter(${entries}, lambda e_: ${KEY} = k_), lambda e_: struct_extract(e_, 'value'))`

/** The aggregate of the values of each key, in the order of the keys. */
function byKey(reduce: 'list_sum' | 'list_min' | 'list_max') {
  return (input: AggregateInput): Value => {
    const { sql, key, of } = entriesOf(input)
    const whole = asInt(of)
    if (!isNumber(of)) throw input.wrongType('takes numbers as values')
    const type: Type = reduce === 'list_sum' && whole !== undefined ? int(64, whole.isSigned) : of
    const keysOf = (entries: string): string =>
      `list_sort(list_distinct(list_transform(${entries}, lambda e_: ${KEY})))`
    const reduced = (entries: string, keys: string): string =>
      `list_transform(${keys}, lambda k_: CAST(${reduce}(${valuesOf(entries)}) AS ${duckType(type)}))`
    const isMap = input.arg(0).type.kind === 'map'
    // For pairs of arrays ClickHouse leaves out the keys whose sum is zero.
    const isCompact = !isMap && reduce === 'list_sum'
    const pair = (keys: string, values: string): string => `struct_pack("1" := ${keys}, "2" := ${values})`
    const withoutZeros = (keys: string, values: string): string =>
      bound(input, values, (sums) => {
        const kept = `list_filter(${keys}, lambda z_, i_: list_extract(${sums}, i_) <> 0)`
        return pair(kept, `list_filter(${sums}, lambda z_: z_ <> 0)`)
      })
    const made = bound(input, sql, (entries) =>
      bound(input, keysOf(entries), (keys) => {
        const values = ofFewReads(input, entries, `len(${keys})`, reduced(entries, keys))
        return isMap ? `map(${keys}, ${values})` : isCompact ? withoutZeros(keys, values) : pair(keys, values)
      }),
    )
    return value(
      made,
      isMap ? { kind: 'map', key, value: type } : { kind: 'tuple', items: [arrayOf(key), arrayOf(type)] },
    )
  }
}

/** The values with the largest sums of weights; of equal sums the smaller value first. */
function topKWeighted(input: AggregateInput): Value {
  const max = input.parameters.length > 0 ? constantNumber(input.parameters[0]) : 10
  if (max === undefined || max < 1 || max > 65_536) throw input.wrongType('takes a number of elements up to 65536')
  const [of, weight] = [input.arg(0), input.arg(1)]
  const entries = `coalesce(${input.engine('list', `struct_pack(key := ${plainSql(of)}, value := CAST(${numberSql(weight)} AS HUGEINT))`)}, [])`
  const keysOf = (known: string): string => `list_distinct(list_transform(${known}, lambda e_: ${KEY}))`
  const sums = (known: string, keys: string): string =>
    `list_transform(${keys}, lambda k_: struct_pack(n := -list_sum(${valuesOf(known)}), v := k_))`
  const sorted = bound(input, entries, (known) =>
    bound(input, keysOf(known), (keys) => ofFewReads(input, known, `len(${keys})`, `list_sort(${sums(known, keys)})`)),
  )
  return value(
    `list_transform(list_slice(${sorted}, 1, ${max}), lambda s_: struct_extract(s_, 'v'))`,
    arrayOf(notNull(plain(of.type))),
  )
}

export const MAP_AGGREGATES: readonly AggregateDefinition[] = [
  ...defineAggregate('sumMap sumMappedArrays', [1, 2], byKey('list_sum')),
  ...defineAggregate('minMap minMappedArrays', [1, 2], byKey('list_min')),
  ...defineAggregate('maxMap maxMappedArrays', [1, 2], byKey('list_max')),
  ...defineAggregate('topKWeighted', 2, topKWeighted, 3),
]
