import { arrayOf, duckType, FLOAT64, type Type } from '../types.ts'
import { constantText, type Value, value } from '../value.ts'
import { items, orDefault, sumType } from './arrays.ts'
import { define, type FunctionDefinition, type Input, u64 } from './definition.ts'

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

/** The aggregate of an array that a list function of the engine computes; undefined for one that it has not. */
export function reduced(name: string, array: string, of: Type): Value | undefined {
  const reducer = Object.hasOwn(REDUCERS, name) ? REDUCERS[name] : undefined
  if (reducer === undefined) return undefined
  if (name.startsWith('group')) return value(reducer === '' ? array : `${reducer}(${array})`, arrayOf(of))
  if (name === 'count' || name.startsWith('uniq')) return u64(`coalesce(${reducer}(${array}), 0)`)
  if (name === 'avg' || name === 'median' || name.startsWith('stddev') || name.startsWith('var'))
    return value(`coalesce(CAST(${reducer}(${array}) AS DOUBLE), CAST('nan' AS DOUBLE))`, FLOAT64)
  const type = name === 'sum' ? sumType(of) : of
  return orDefault(`CAST(${reducer}(${array}) AS ${duckType(type)})`, type)
}

function reduce(input: Input): Value {
  const name = constantText(input.arg(0))
  const [array] = input.args.slice(1)
  const made = name === undefined || array === undefined ? undefined : reduced(name, array.sql, items(array, input))
  if (made === undefined) throw input.fail(`takes one of ${Object.keys(REDUCERS).join(', ')} and an array`)
  return made
}

export const ARRAY_REDUCE_FUNCTIONS: readonly FunctionDefinition[] = [define('arrayReduce', 2, reduce)]
