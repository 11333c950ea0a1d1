import type { CallArguments } from './definition.ts'
import { guarded } from './numbers.ts'

/** Longest list that a function makes out of a number, or reads element by element. */
export const LIST_LENGTH_MAX = 100_000
/** Longest list of which a part is computed with for each element: time and memory grow with its square, outside of the engine's memory limit. */
const SQUARE_LENGTH_MAX = 4000

/** `sql`, unless it would take a part of a list for each element of a list that is too long for that. */
export function ofShortList(
  input: Pick<CallArguments, 'name'>,
  list: string,
  sql: string,
  max = SQUARE_LENGTH_MAX,
): string {
  return guarded(sql, `len(${list}) > ${max}`, `${input.name} takes at most ${max} elements (list_length)`)
}

/** Most steps of a function that reads a list once for each of its keys or buckets. */
const KEY_STEPS_MAX = SQUARE_LENGTH_MAX ** 2

/** `sql`, unless it would read a list too often for its length. */
export function ofFewReads(input: Pick<CallArguments, 'name'>, list: string, reads: string, sql: string): string {
  const message = `${input.name} takes at most ${KEY_STEPS_MAX} elements times keys or buckets (list_length)`
  return guarded(sql, `len(${list}) * ${reads} > ${KEY_STEPS_MAX}`, message)
}
