import { arrayOf, asInt, duckType, int, isNumber, plain, supertype, type Type } from '../types.ts'
import { condition, conditionSql, convert, plainSql, type Value, value } from '../value.ts'
import { bound, type CallArguments, define, defineAll, type FunctionDefinition } from './definition.ts'

type MapType = Extract<Type, { kind: 'map' }>

const array = (sql: string, of: Type): Value => value(sql, arrayOf(of))

function elementType(given: Value, input: CallArguments): Type {
  if (given.type.kind !== 'array') throw input.wrongType('takes two arrays')
  return plain(given.type.of)
}

function mapOf(input: CallArguments, at = 0): MapType {
  const { type } = input.arg(at)
  if (type.kind !== 'map') throw input.wrongType('takes a map')
  return type
}

type Entries = {
  readonly body: Value
  readonly entries: string
  /** The entry in the body. */
  readonly name: string
  readonly type: MapType
}

/** The body of a lambda over the keys and values of a map, which is the last argument. */
function overEntries(input: CallArguments): Entries {
  const { lambda } = input.arg(0)
  if (lambda === undefined) throw input.fail('takes a lambda of a key and a value, and a map')
  const type = mapOf(input, 1)
  const name = input.freshName()
  return {
    body: lambda([
      value(`struct_extract(${name}, 'key')`, type.key),
      value(`struct_extract(${name}, 'value')`, type.value),
    ]),
    entries: `map_entries(${input.arg(1).sql})`,
    name,
    type,
  }
}

const matching = (input: CallArguments): string => {
  const { body, entries, name } = overEntries(input)
  return `list_filter(${entries}, lambda ${name}: ${conditionSql(body)})`
}

function apply(input: CallArguments): Value {
  const { body, entries, name } = overEntries(input)
  if (body.type.kind !== 'tuple' || body.type.items.length !== 2)
    throw input.fail('takes a lambda that returns a tuple of a key and a value')
  const [key, of] = body.type.items as readonly [Type, Type]
  const pairs = `list_transform(${entries}, lambda ${name}: ${body.sql})`
  return value(
    `map(list_transform(${pairs}, lambda p_: struct_extract(p_, '1')), list_transform(${pairs}, lambda p_: struct_extract(p_, '2')))`,
    { kind: 'map', key, value: of },
  )
}

/** Sorted by its keys, or by what a lambda makes of each entry. */
function sorted(input: CallArguments, isReverse: boolean): Value {
  const { body, entries, name, type } = input.arg(0).lambda === undefined ? ownEntries(input) : overEntries(input)
  const keyed = `list_transform(${entries}, lambda ${name}: struct_pack(o := ${plainSql(body)}, e := ${name}))`
  const order = `list_sort(${keyed}, '${isReverse ? 'DESC' : 'ASC'}')`
  return value(`map_from_entries(list_transform(${order}, lambda s_: struct_extract(s_, 'e')))`, type)
}

function ownEntries(input: CallArguments): Entries {
  const [type, name] = [mapOf(input), input.freshName()]
  const body = value(`struct_extract(${name}, 'key')`, type.key)
  return { body, entries: `map_entries(${input.arg(0).sql})`, name, type }
}

/** The entries of both maps; of a key that both have, the second value. */
function merged(input: CallArguments): Value {
  const [a, b] = [mapOf(input), mapOf(input, 1)]
  const type = commonMap(a, b, input)
  const [x, y] = [0, 1].map((at) => `CAST(${input.arg(at).sql} AS ${duckType(type)})`)
  return value(`map_concat(${x}, ${y})`, type)
}

function commonMap(a: MapType, b: MapType, input: CallArguments): MapType {
  const [key, of] = [supertype([a.key, b.key]), supertype([a.value, b.value])]
  if (key === undefined || of === undefined) throw input.wrongType('takes maps of one type')
  return { kind: 'map', key, value: of }
}

/** Sums and differences of the values of each key, in the order of the keys. */
function added(input: CallArguments, sign: '+' | '-'): Value {
  const common = commonMap(mapOf(input), mapOf(input, 1), input)
  if (!isNumber(common.value)) throw input.wrongType('takes maps of numbers')
  const whole = asInt(common.value)
  const type: MapType = { ...common, value: whole === undefined ? common.value : int(64, whole.isSigned) }
  const wide = whole === undefined ? 'DOUBLE' : 'HUGEINT'
  const [x = '', y = ''] = [0, 1].map((at) => `CAST(${input.arg(at).sql} AS ${duckType(common)})`)
  const of = (map: string): string => `CAST(coalesce(map_extract_value(${map}, k_), 0) AS ${wide})`
  const sums = (a: string, b: string): string =>
    bound(
      input,
      `list_sort(list_distinct(list_concat(map_keys(${a}), map_keys(${b}))))`,
      (keys) =>
        `map(${keys}, list_transform(${keys}, lambda k_: CAST(${of(a)} ${sign} ${of(b)} AS ${duckType(type.value)})))`,
    )
  return value(
    bound(input, x, (a) => bound(input, y, (b) => sums(a, b))),
    type,
  )
}

export const MAP_FUNCTIONS: readonly FunctionDefinition[] = [
  define(
    'map',
    [0, 200],
    (input) => {
      const [keys, values] = [input.args.filter((_, at) => at % 2 === 0), input.args.filter((_, at) => at % 2 === 1)]
      const [key, of] = [
        supertype(keys.map(({ type }) => plain(type))),
        supertype(values.map(({ type }) => plain(type))),
      ]
      if (key === undefined || of === undefined || keys.length !== values.length)
        throw input.fail('takes pairs of a key and a value, each of one type')
      return value(
        `map([${keys.map((each) => convert(each, key)).join(', ')}], [${values.map((each) => convert(each, of)).join(', ')}])`,
        { kind: 'map', key, value: of },
      )
    },
    { lowCardinality: false, nulls: false },
  ),
  define('mapFromArrays', 2, (input) =>
    value(`map(${input.arg(0).sql}, ${input.arg(1).sql})`, {
      kind: 'map',
      key: elementType(input.arg(0), input),
      value: elementType(input.arg(1), input),
    }),
  ),
  define('mapKeys', 1, (input) => array(`map_keys(${input.arg(0).sql})`, mapOf(input).key)),
  define('mapValues', 1, (input) => array(`map_values(${input.arg(0).sql})`, mapOf(input).value)),
  ...defineAll('mapContains mapContainsKey', 2, (input) =>
    condition(`list_contains(map_keys(${input.arg(0).sql}), ${convert(input.arg(1), mapOf(input).key)})`),
  ),
  define('mapContainsValue', 2, (input) =>
    condition(`list_contains(map_values(${input.arg(0).sql}), ${convert(input.arg(1), mapOf(input).value)})`),
  ),
  define('mapFilter', 2, (input) => value(`map_from_entries(${matching(input)})`, mapOf(input, 1))),
  define('mapApply', 2, apply),
  define('mapExists', 2, (input) => condition(`(len(${matching(input)}) > 0)`)),
  define('mapAll', 2, (input) => condition(`(len(${matching(input)}) = cardinality(${input.arg(1).sql}))`)),
  define('mapSort', [1, 2], (input) => sorted(input, false)),
  define('mapReverseSort', [1, 2], (input) => sorted(input, true)),
  define('mapUpdate', 2, merged),
  define('mapAdd', 2, (input) => added(input, '+')),
  define('mapSubtract', 2, (input) => added(input, '-')),
]
