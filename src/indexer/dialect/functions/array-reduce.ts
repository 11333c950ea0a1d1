import { arrayOf, duckType, FLOAT64, notNull, nullable, plain, type Type } from '../types.ts'
import { constantText, plainSql, type Value, value } from '../value.ts'
import { items, orDefault, sameSizes, sumType } from './arrays.ts'
import { type CallArguments, define, type FunctionDefinition, uint64Value } from './definition.ts'

/** Aggregates of the elements of one array, with the list functions of the engine that compute them. */
const REDUCERS: Readonly<Record<string, string>> = {
  sum: 'list_sum',
  min: 'list_min',
  max: 'list_max',
  avg: 'list_avg',
  count: 'len',
  uniq: 'list_unique',
  uniqExact: 'list_unique',
  any: 'list_first',
  anyLast: 'list_last',
  median: 'list_median',
  stddevPop: 'list_stddev_pop',
  stddevSamp: 'list_stddev_samp',
  varPop: 'list_var_pop',
  varSamp: 'list_var_samp',
  groupArray: '',
  groupUniqArray: 'list_distinct',
}

/** The aggregate of an array that a list function of the engine computes, without NULL; undefined for one that it has not. */
export function reduced(name: string, array: string, of: Type): Value | undefined {
  const reducer = Object.hasOwn(REDUCERS, name) ? REDUCERS[name] : undefined
  if (reducer === undefined) return undefined
  const list = of.isNullable === true ? `list_filter(${array}, lambda e_: e_ IS NOT NULL)` : array
  const made = reducer === '' ? list : `${reducer}(${list})`
  if (name.startsWith('group')) return value(made, arrayOf(notNull(of)))
  if (name === 'count' || name.startsWith('uniq')) return uint64Value(`coalesce(${made}, 0)`)
  if (name === 'avg' || name === 'median' || name.startsWith('stddev') || name.startsWith('var')) {
    const number = `CAST(${made} AS DOUBLE)`
    return of.isNullable === true
      ? value(number, nullable(FLOAT64))
      : value(`coalesce(${number}, CAST('nan' AS DOUBLE))`, FLOAT64)
  }
  const type = name !== 'sum' ? of : of.isNullable === true ? nullable(sumType(of)) : sumType(of)
  return orDefault(`CAST(${made} AS ${duckType(type)})`, type)
}

function reduce(input: CallArguments): Value {
  const name = constantText(input.arg(0))
  const [array] = input.args.slice(1)
  const made = name === undefined || array === undefined ? undefined : reduced(name, array.sql, items(array, input))
  if (made === undefined) throw input.fail(`takes one of ${Object.keys(REDUCERS).join(', ')} and an array`)
  return made
}

/** One value of all elements. The list of the engine has the value with the elements, because both must be of one type. */
function fold(input: CallArguments): Value {
  const [head, start] = [input.arg(0), input.arg(input.args.length - 1)]
  const arrays = input.args.slice(1, -1)
  if (head.lambda === undefined) throw input.fail('takes a lambda, arrays and a start value')
  const type = plain(start.type)
  const [last, next, at] = [input.freshName(), input.freshName(), input.freshName()]
  const accumulated = value(`struct_extract(${last}, 'a')`, type)
  const given = arrays.map((each, i) => value(`struct_extract(${next}, 'e${i}')`, items(each, input)))
  const step = (a: string, element: (i: number) => string): string =>
    `struct_pack(a := CAST(${a} AS ${duckType(type)}), ${arrays.map((_, i) => `e${i} := ${element(i)}`).join(', ')})`
  const body = plainSql(head.lambda([accumulated, ...given]))
  const positions = sameSizes(input, arrays, `range(1, len(${arrays[0]?.sql}) + 1)`)
  const steps = `list_transform(${positions}, lambda ${at}: ${step('NULL', (i) => `list_extract(${arrays[i]?.sql}, ${at})`)})`
  const all = `list_concat([${step(plainSql(start), () => 'NULL')}], ${steps})`
  const folded = `list_reduce(${all}, lambda ${last}, ${next}: ${step(body, (i) => `struct_extract(${next}, 'e${i}')`)})`
  return value(`struct_extract(${folded}, 'a')`, type)
}

export const ARRAY_REDUCE_FUNCTIONS: readonly FunctionDefinition[] = [
  define('arrayReduce', 2, reduce),
  define('arrayFold', [3, 10], fold),
]
