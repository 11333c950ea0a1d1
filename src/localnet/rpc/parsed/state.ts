import type { Json } from '../json.ts'
import type { TokenDisplay } from './token-amount.ts'

/** `parsed` of an account; `info` is left out by states that hold nothing. */
export type ParsedState = { readonly type: string; readonly info?: Json | undefined }

export type AccountToParse = {
  readonly address: string
  readonly owner: string
  readonly data: Uint8Array
  /** How amounts of the account's mint are shown; only token accounts need it, and are not parsed without. */
  readonly display?: TokenDisplay | undefined
}
