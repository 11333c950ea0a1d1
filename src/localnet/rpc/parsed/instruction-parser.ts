import { BytesError } from './byte-reader.ts'
import type { ParsedState } from './state.ts'

/** What a parser of one program gets: the instruction's accounts as addresses, and its data. It throws BytesError where they do not fit. */
export type InstructionParser = (accounts: readonly string[], data: Uint8Array) => ParsedState

/** The first accounts under their names; further ones are not shown. Throws BytesError when there are fewer accounts than names. */
export function nameAccounts(
  accounts: readonly string[],
  names: readonly string[],
): { readonly [name: string]: string } {
  if (accounts.length < names.length) throw new BytesError('too few accounts')
  return Object.fromEntries(names.map((name, index) => [name, accounts[index] as string]))
}
