import { QueryError } from '../query/error.ts'
import { nearNames } from '../query/near-names.ts'
import { foldName, shownName } from '../query/sql-tokens.ts'
import { type AggregateDefinition, AGGREGATES as BASIC_AGGREGATES, WINDOW_FUNCTIONS } from './functions/aggregates.ts'
import { ARRAY_POSITION_FUNCTIONS } from './functions/array-positions.ts'
import { ARRAY_REDUCE_FUNCTIONS } from './functions/array-reduce.ts'
import { ARRAY_FUNCTIONS } from './functions/arrays.ts'
import { BIT_FUNCTIONS } from './functions/bits.ts'
import { CONVERSION_FUNCTIONS } from './functions/conversions.ts'
import type { FunctionDefinition } from './functions/definition.ts'
import { JSON_FUNCTIONS } from './functions/json.ts'
import { MAP_AGGREGATES } from './functions/map-aggregates.ts'
import { MAP_FUNCTIONS } from './functions/maps.ts'
import { NUMBER_SCALE_FUNCTIONS } from './functions/number-scales.ts'
import { NUMBER_FUNCTIONS } from './functions/numbers.ts'
import { STATISTICS } from './functions/statistics.ts'
import { TEXT_CODE_FUNCTIONS } from './functions/text/codes.ts'
import { TEXT_SEARCH_FUNCTIONS } from './functions/text/search.ts'
import { TEXT_FUNCTIONS } from './functions/text/texts.ts'
import { CALENDAR_FUNCTIONS } from './functions/time/calendar.ts'
import { TIME_TEXT_FUNCTIONS } from './functions/time/texts.ts'
import { TIME_FUNCTIONS } from './functions/time/times.ts'
import { WEEK_FUNCTIONS } from './functions/time/weeks.ts'
import { TUPLE_FUNCTIONS } from './functions/tuples.ts'
import { URL_FUNCTIONS } from './functions/urls.ts'
import { VALUE_FUNCTIONS } from './functions/values.ts'

/** Everything that a statement may call on the embedded engine. docs/schema.md and system.functions are made from it. */

type Group = { readonly name: string; readonly functions: readonly string[]; readonly isAggregate?: true }

const SCALAR_GROUPS: readonly (readonly [string, readonly FunctionDefinition[]])[] = [
  ['Numbers and logic', [...NUMBER_FUNCTIONS, ...NUMBER_SCALE_FUNCTIONS, ...BIT_FUNCTIONS]],
  ['Conditions, comparison and conversion', [...VALUE_FUNCTIONS, ...CONVERSION_FUNCTIONS]],
  ['Text', [...TEXT_FUNCTIONS, ...TEXT_SEARCH_FUNCTIONS, ...TEXT_CODE_FUNCTIONS]],
  ['URLs and addresses', URL_FUNCTIONS],
  ['Time', [...TIME_FUNCTIONS, ...WEEK_FUNCTIONS, ...CALENDAR_FUNCTIONS, ...TIME_TEXT_FUNCTIONS]],
  ['Arrays', [...ARRAY_FUNCTIONS, ...ARRAY_REDUCE_FUNCTIONS, ...ARRAY_POSITION_FUNCTIONS]],
  ['Tuples', TUPLE_FUNCTIONS],
  ['Maps', MAP_FUNCTIONS],
  ['JSON', JSON_FUNCTIONS],
]

const SCALARS: ReadonlyMap<string, FunctionDefinition> = new Map(
  SCALAR_GROUPS.flatMap(([, functions]) => functions.map((each) => [each.name.toLowerCase(), each] as const)),
)
const AGGREGATES: readonly AggregateDefinition[] = [...BASIC_AGGREGATES, ...STATISTICS, ...MAP_AGGREGATES]
const AGGREGATE_NAMES: ReadonlyMap<string, AggregateDefinition> = new Map(
  AGGREGATES.map((each) => [each.name.toLowerCase(), each]),
)

/** Endings of aggregate names, such as sumIf. */
const COMBINATORS: readonly string[] = ['If', 'OrNull', 'OrDefault', 'Distinct', 'Array']

export type FoundAggregate = { readonly definition: AggregateDefinition; readonly combinators: ReadonlySet<string> }

export function scalarNamed(name: string): FunctionDefinition | undefined {
  return SCALARS.get(foldName(name))
}

export function aggregateNamed(name: string): FoundAggregate | undefined {
  let rest = foldName(name)
  const combinators = new Set<string>()
  for (;;) {
    const definition = AGGREGATE_NAMES.get(rest)
    if (definition !== undefined) return { definition, combinators }
    const ending = COMBINATORS.find((each) => rest.endsWith(each.toLowerCase()) && !combinators.has(each))
    if (ending === undefined) return undefined
    combinators.add(ending)
    rest = rest.slice(0, -ending.length)
  }
}

/** Names with their groups, in the order of the documentation. */
export const OFFERED_FUNCTIONS: readonly Group[] = [
  ...SCALAR_GROUPS.map(([name, functions]) => ({ name, functions: functions.map((each) => each.name) })),
  { name: 'Rows of an array', functions: ['arrayJoin'] },
  { name: 'Aggregates', functions: AGGREGATES.map(({ name }) => name), isAggregate: true },
  { name: 'Windows', functions: [...WINDOW_FUNCTIONS.values()].map(({ name }) => name) },
]

export const OFFERED_TABLE_FUNCTIONS: readonly string[] = ['numbers', 'zeros', 'values']

const ALL_NAMES: readonly string[] = OFFERED_FUNCTIONS.flatMap(({ functions }) => functions)

export function functionNotOffered(name: string, at: number): QueryError {
  const near = nearNames(name, ALL_NAMES, 3)
  const offered = near.length === 0 ? 'the list is' : `${near.join(', ')}; the whole list is`
  return new QueryError(
    'UNKNOWN_FUNCTION',
    `Function ${shownName(name)} is not offered, at position ${at}; offered: ${offered} in docs/schema.md.`,
  )
}

export function tableFunctionNotOffered(name: string, at: number): QueryError {
  return new QueryError(
    'UNKNOWN_FUNCTION',
    `Table function ${shownName(name)} is not offered, at position ${at}; offered: ${OFFERED_TABLE_FUNCTIONS.join(', ')}.`,
  )
}
