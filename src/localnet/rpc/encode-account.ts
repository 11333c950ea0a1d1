import { Buffer } from 'node:buffer'
import { constants, zstdCompressSync } from 'node:zlib'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import type { Account } from '../chain/model.ts'
import type { Json } from './json.ts'
import { parseAccountData } from './parsed/accounts.ts'
import { isTokenProgram, SYSVAR } from './parsed/program-ids.ts'
import { readClockTimestamp } from './parsed/sysvars.ts'
import type { TokenDisplay } from './parsed/token-amount.ts'
import { tokenDisplay } from './parsed/token-extensions.ts'
import { parseMint, parseTokenAccount } from './parsed/token-state.ts'

export const ACCOUNT_ENCODINGS = ['binary', 'base58', 'base64', 'jsonParsed', 'base64+zstd'] as const
export type AccountEncoding = (typeof ACCOUNT_ENCODINGS)[number]

export type DataSlice = { readonly offset: number; readonly length: number }

/** Reads another account at the same slot: the mint of a token account, the clock. */
export type ReadAccount = (address: string) => Account | null

export type AccountEncodingOptions = {
  readonly encoding: AccountEncoding
  readonly dataSlice?: DataSlice | undefined
  readonly readAccount: ReadAccount
}

export const BASE58_ACCOUNT_BYTES_MAX = 128

/** The JSON of an account in every method and notification. Never throws: data too long for base58 is replaced by an error text. */
export function encodeAccount(address: string, account: Account, options: AccountEncodingOptions): Json {
  return withData(account, encodeData(address, account, options))
}

/** The JSON of an account around its encoded data. */
export function withData(account: Account, data: Json): Json {
  return {
    data,
    executable: account.executable,
    lamports: account.lamports,
    owner: account.owner,
    rentEpoch: account.rentEpoch,
    space: account.data.length,
  }
}

/** Whether a request must be refused with -32600 instead of the error text. */
export function isTooLongForBase58(
  account: Account,
  { encoding, dataSlice }: Omit<AccountEncodingOptions, 'readAccount'>,
): boolean {
  if (encoding !== 'binary' && encoding !== 'base58') return false
  return sliceData(account.data, dataSlice).length > BASE58_ACCOUNT_BYTES_MAX
}

function encodeData(
  address: string,
  account: Account,
  { encoding, dataSlice, readAccount }: AccountEncodingOptions,
): Json {
  const sliced = sliceData(account.data, dataSlice)
  switch (encoding) {
    case 'binary':
      return base58Text(sliced)
    case 'base58':
      return [base58Text(sliced), 'base58']
    case 'base64':
      return [base64Text(sliced), 'base64']
    case 'base64+zstd':
      return [base64Text(compress(sliced)), 'base64+zstd']
    case 'jsonParsed':
      return parseAccount(address, account, readAccount) ?? [base64Text(sliced), 'base64']
  }
}

/** Agave leaves the accounts of a token program that cannot be parsed out of parsed lists: clients expect an object in each. */
export function isListedParsedOnly(account: Account, encoding: AccountEncoding): boolean {
  return encoding === 'jsonParsed' && isTokenProgram(account.owner)
}

/** The data in encoding `jsonParsed`, or undefined where it cannot be parsed and is written as base64. */
export function parseAccount(address: string, account: Account, readAccount: ReadAccount): Json | undefined {
  const display = displayOfAccount(account, readAccount)
  return parseAccountData({ address, owner: account.owner, data: account.data, display })
}

/** How the amounts of a token account are displayed. Reads all accounts that its encoding needs. */
export function displayOfAccount(account: Account, readAccount: ReadAccount): TokenDisplay | undefined {
  if (!isTokenProgram(account.owner)) return undefined
  const mint = parseTokenAccount(account.data)?.mint
  return mint === undefined ? undefined : displayOfMint(readAccount(mint), readAccount)
}

/** How amounts of this mint are displayed at the bank's time, or undefined where the account is not a mint. */
export function displayOfMint(mint: Account | null, readAccount: ReadAccount): TokenDisplay | undefined {
  const state = mint && parseMint(mint.data)
  if (!state) return undefined
  const clock = state.extensions.length > 0 ? readAccount(SYSVAR.clock) : null
  return tokenDisplay(state, clock && clock.data.length >= 40 ? Number(readClockTimestamp(clock.data)) : 0)
}

function sliceData(data: Uint8Array, slice: DataSlice | undefined): Uint8Array {
  return slice ? data.subarray(slice.offset, slice.offset + slice.length) : data
}

function base58Text(data: Uint8Array): string {
  return data.length <= BASE58_ACCOUNT_BYTES_MAX ? encodeBase58(data) : 'error: data too large for bs58 encoding'
}

function base64Text(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64')
}

/** Offset and value of the window descriptor (RFC 8878) in the frames of Agave's streaming encoder: 2 MiB, no content size, no checksum. */
const WINDOW_DESCRIPTOR_AT = 5
const WINDOW_2_MIB = 0x58

/** A zstd frame, byte for byte that of Agave. A larger window than the blocks need is always valid. */
function compress(data: Uint8Array): Uint8Array {
  const frame = zstdCompressSync(data, { params: { [constants.ZSTD_c_contentSizeFlag]: 0 } })
  frame[WINDOW_DESCRIPTOR_AT] = WINDOW_2_MIB
  return frame
}
