import type { Json } from '../json.ts'
import { BytesError } from './byte-reader.ts'
import type { TokenDisplay } from './token-amount.ts'

/** `parsed` of an account; states without data omit `info`. */
export type ParsedState = { readonly type: string; readonly info?: Json | undefined }

export type AccountToParse = {
  readonly address: string
  readonly owner: string
  readonly data: Uint8Array
  /** How amounts of the account's mint are displayed; required for token accounts, which are not parsed without it. */
  readonly display?: TokenDisplay | undefined
}

/** A parser for one program's instructions; takes the account addresses and the data. Throws BytesError where they are invalid. */
export type InstructionParser = (accounts: readonly string[], data: Uint8Array) => ParsedState

/** The first accounts by name; further ones are omitted. Throws BytesError when there are fewer accounts than names. */
export function nameAccounts(
  accounts: readonly string[],
  names: readonly string[],
): { readonly [name: string]: string } {
  if (accounts.length < names.length) throw new BytesError('too few accounts')
  return Object.fromEntries(names.map((name, index) => [name, accounts[index] as string]))
}
