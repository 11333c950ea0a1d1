import { BYTES } from '../../types.ts'
import { constantText, type Value, value } from '../../value.ts'
import type { CallArguments } from '../definition.ts'

/** A text argument. Bytes that a function decoded before are an error here unless they are UTF-8. */
export function textArg(input: CallArguments, at: number): string {
  const given = input.arg(at)
  if (given.isBytes === true) return `decode(${given.sql})`
  if (given.type.kind !== 'string' && given.type.kind !== 'unknown')
    throw input.wrongType(`takes a text as argument ${at + 1}`)
  return given.sql
}

/** A regular expression; `\\1` in a replacement is the first group on both engines. */
export function pattern(input: CallArguments, at: number): string {
  if (constantText(input.arg(at)) === undefined) throw input.fail('takes a constant regular expression')
  return textArg(input, at)
}

export const bytes = (sql: string): Value => value(sql, BYTES)
