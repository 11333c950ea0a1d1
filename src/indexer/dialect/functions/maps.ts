import { arrayOf, plain, supertype, type Type } from '../types.ts'
import { convert, type Value, value } from '../value.ts'
import { define, type FunctionDefinition, type Input, test } from './definition.ts'

const array = (sql: string, of: Type): Value => value(sql, arrayOf(of))

function elementType(given: Value, input: Input): Type {
  if (given.type.kind !== 'array') throw input.fail('takes two arrays')
  return plain(given.type.of)
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
  define('mapContains', 2, (input) =>
    test(`list_contains(map_keys(${input.arg(0).sql}), ${convert(input.arg(1), mapOf(input).key)})`),
  ),
]

function mapOf(input: Input): Extract<Type, { kind: 'map' }> {
  const { type } = input.arg(0)
  if (type.kind !== 'map') throw input.fail('takes a map')
  return type
}
