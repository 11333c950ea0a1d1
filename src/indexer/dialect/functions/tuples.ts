import { asInt, duckType, FLOAT64, int, isNumber, type Type, tupleOf } from '../types.ts'
import { type Value, value } from '../value.ts'
import { type CallArguments, define, defineAll, type FunctionDefinition } from './definition.ts'

/** Arithmetic of tuples and arrays of numbers as vectors. */

/** The elements of an argument: those of a tuple are known by number, an array has any number. */
type Vector = { readonly parts: readonly Value[] } | { readonly list: string }

function vector(input: CallArguments, at: number): Vector {
  const { type, sql } = input.arg(at)
  if (type.kind === 'tuple' && type.items.every(isNumber))
    return { parts: type.items.map((item, index) => value(`struct_extract(${sql}, '${index + 1}')`, item)) }
  if (type.kind === 'array' && isNumber(type.of)) return { list: `CAST(${sql} AS DOUBLE[])` }
  throw input.wrongType('takes tuples or arrays of numbers')
}

const double = (sql: string): string => `CAST(${sql} AS DOUBLE)`

/** The sum of a term for each pair of elements. */
function pairSum(input: CallArguments, term: (x: string, y: string) => string): string {
  const [a, b] = [vector(input, 0), vector(input, input.args.length > 1 ? 1 : 0)]
  if ('parts' in a && 'parts' in b) {
    if (a.parts.length !== b.parts.length) throw input.wrongType('takes tuples of the same size')
    return `(${a.parts.map((x, at) => term(double(x.sql), double((b.parts[at] as Value).sql))).join(' + ')})`
  }
  if ('parts' in a || 'parts' in b) throw input.wrongType('takes two tuples or two arrays')
  const [x, y] = [`list_extract(${a.list}, i_)`, `list_extract(${b.list}, i_)`]
  return `coalesce(list_sum(list_transform(range(1, len(${a.list}) + 1), lambda i_: ${term(x, y)})), 0)`
}

const square = (x: string): string => `(${x}) * (${x})`
const l2 = (input: CallArguments): string => `sqrt(${pairSum(input, (x) => square(x))})`

/** The type of a sum, a difference or a product of two numbers. */
function pairType(a: Type, b: Type, operator: '+' | '-' | '*'): Type {
  const [x, y] = [asInt(a), asInt(b)]
  if (x === undefined || y === undefined) return FLOAT64
  return int(Math.min(64, Math.max(x.bits, y.bits) * 2), operator === '-' || x.isSigned || y.isSigned)
}

const elementwise = (names: string, operator: '+' | '-' | '*'): FunctionDefinition[] =>
  defineAll(names, 2, (input) => {
    const [a, b] = [vector(input, 0), vector(input, 1)]
    if (!('parts' in a) || !('parts' in b) || a.parts.length !== b.parts.length)
      throw input.wrongType('takes two tuples of the same size')
    const made = a.parts.map((x, at) => {
      const y = b.parts[at] as Value
      const type = pairType(x.type, y.type, operator)
      return value(
        `CAST(CAST(${x.sql} AS ${duckType(type)}) ${operator} CAST(${y.sql} AS ${duckType(type)}) AS ${duckType(type)})`,
        type,
      )
    })
    return value(
      `struct_pack(${made.map((each, at) => `"${at + 1}" := ${each.sql}`).join(', ')})`,
      tupleOf(made.map(({ type }) => type)),
    )
  })

const distance = (names: string, sql: (input: CallArguments) => string): FunctionDefinition[] =>
  defineAll(names, 2, (input) => value(sql(input), FLOAT64))

export const TUPLE_FUNCTIONS: readonly FunctionDefinition[] = [
  ...elementwise('tuplePlus vectorSum', '+'),
  ...elementwise('tupleMinus vectorDifference', '-'),
  ...elementwise('tupleMultiply', '*'),
  define('tupleConcat', [1, 20], (input) => {
    const parts = input.args.flatMap(({ type, sql }) => {
      if (type.kind !== 'tuple') throw input.wrongType('takes tuples')
      return type.items.map((item, at) => value(`struct_extract(${sql}, '${at + 1}')`, item))
    })
    return value(
      `struct_pack(${parts.map((each, at) => `"${at + 1}" := ${each.sql}`).join(', ')})`,
      tupleOf(parts.map(({ type }) => type)),
    )
  }),
  ...defineAll('L1Norm normL1', 1, (input) =>
    value(
      pairSum(input, (x) => `abs(${x})`),
      FLOAT64,
    ),
  ),
  ...defineAll('L2Norm normL2', 1, (input) => value(l2(input), FLOAT64)),
  ...distance('L1Distance distanceL1', (input) => pairSum(input, (x, y) => `abs(${x} - ${y})`)),
  ...distance('L2Distance distanceL2', (input) => `sqrt(${pairSum(input, (x, y) => square(`${x} - ${y}`))})`),
  ...distance('L2SquaredDistance distanceL2Squared', (input) => pairSum(input, (x, y) => square(`${x} - ${y}`))),
  ...distance('cosineDistance distanceCosine', (input) => {
    const [dot, a, b] = [
      pairSum(input, (x, y) => `${x} * ${y}`),
      pairSum(input, (x) => square(x)),
      pairSum(input, (_, y) => square(y)),
    ]
    return `(1 - ${dot} / sqrt(${a} * ${b}))`
  }),
]
