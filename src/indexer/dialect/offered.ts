import { QueryError } from '../query/error.ts'
import { foldName, shownName } from '../query/sql-tokens.ts'
import { AGGREGATES, type AggregateDefinition, WINDOW_FUNCTIONS } from './functions/aggregates.ts'
import { ARRAY_FUNCTIONS } from './functions/arrays.ts'
import type { FunctionDefinition } from './functions/definition.ts'
import { JSON_FUNCTIONS } from './functions/json.ts'
import { MAP_FUNCTIONS } from './functions/maps.ts'
import { NUMBER_FUNCTIONS } from './functions/numbers.ts'
import { TEXT_FUNCTIONS } from './functions/texts.ts'
import { TIME_FUNCTIONS } from './functions/times.ts'
import { VALUE_FUNCTIONS } from './functions/values.ts'

/** Everything that a statement may call on the embedded engine. docs/schema.md and system.functions are made from it. */

type Group = { readonly name: string; readonly functions: readonly string[]; readonly isAggregate?: true }

const SCALAR_GROUPS: readonly (readonly [string, readonly FunctionDefinition[]])[] = [
  ['Numbers and logic', NUMBER_FUNCTIONS],
  ['Conditions, comparison and conversion', VALUE_FUNCTIONS],
  ['Text', TEXT_FUNCTIONS],
  ['Time', TIME_FUNCTIONS],
  ['Arrays', ARRAY_FUNCTIONS],
  ['Maps', MAP_FUNCTIONS],
  ['JSON', JSON_FUNCTIONS],
]

const SCALARS: ReadonlyMap<string, FunctionDefinition> = new Map(
  SCALAR_GROUPS.flatMap(([, functions]) => functions.map((each) => [each.name.toLowerCase(), each] as const)),
)
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

export const OFFERED_TABLE_FUNCTIONS: readonly string[] = ['numbers', 'zeros']

const ALL_NAMES: readonly string[] = OFFERED_FUNCTIONS.flatMap(({ functions }) => functions)

/** Names of which few letters differ, or that contain the name. */
function nearNames(name: string): readonly string[] {
  const folded = foldName(name).slice(0, 40)
  const scored = ALL_NAMES.map((each) => ({ each, score: distance(folded, each.toLowerCase()) }))
  const limit = Math.max(2, Math.floor(folded.length / 3))
  return scored
    .filter(({ score }) => score <= limit)
    .sort((a, b) => a.score - b.score || (a.each < b.each ? -1 : 1))
    .slice(0, 3)
    .map(({ each }) => each)
}

/** Number of letters to change, insert or remove. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++)
      next.push(
        Math.min(
          (row[j] as number) + 1,
          (next[j - 1] as number) + 1,
          (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1),
        ),
      )
    row = next
  }
  return row[b.length] as number
}

export function functionNotOffered(name: string, at: number): QueryError {
  const near = nearNames(name)
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
