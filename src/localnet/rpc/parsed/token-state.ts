import {
  ACCOUNT_TYPE_ACCOUNT,
  ACCOUNT_TYPE_OFFSET,
  MULTISIG_BYTES,
  TOKEN_ACCOUNT_BYTES,
} from '../../chain/token-account.ts'
import { ByteReader, BytesError, parsable } from './byte-reader.ts'

/**
 * State of the Token and Token-2022 programs. Base layouts are fixed; Token-2022 pads a mint to the length of an account, adds one byte
 * for the account type and then type-length-value extensions (token-2022 `extension/mod.rs`).
 */
export type TokenAccountState = {
  readonly mint: string
  readonly owner: string
  readonly amount: bigint
  readonly delegate: string | null
  readonly state: 'initialized' | 'frozen'
  readonly nativeReserve: bigint | null
  readonly delegatedAmount: bigint
  readonly closeAuthority: string | null
  readonly extensions: readonly TokenExtension[]
}

export type MintState = {
  readonly mintAuthority: string | null
  readonly supply: bigint
  readonly decimals: number
  readonly freezeAuthority: string | null
  readonly extensions: readonly TokenExtension[]
}

export type MultisigState = { readonly m: number; readonly n: number; readonly signers: readonly string[] }

export type TokenExtension = { readonly type: number; readonly data: Uint8Array }

const MINT_BYTES = 82
const ACCOUNT_TYPE_MINT = 1
const TLV_OFFSET = 166
const MULTISIG_SIGNERS = 11
const NO_KEY = '11111111111111111111111111111111'

/** Undefined unless the bytes are an initialized token account. */
export function parseTokenAccount(data: Uint8Array): TokenAccountState | undefined {
  if (!hasLayout(data, TOKEN_ACCOUNT_BYTES, ACCOUNT_TYPE_ACCOUNT)) return undefined
  return parsable(() => {
    const read = new ByteReader(data)
    const mint = read.key()
    const owner = read.key()
    const amount = read.u64()
    const delegate = optionalKey(read)
    const state = read.u8()
    if (state !== 1 && state !== 2) throw new BytesError('not initialized')
    const isNative = optionTag(read)
    const reserve = read.u64()
    const delegatedAmount = read.u64()
    const closeAuthority = optionalKey(read)
    return {
      mint,
      owner,
      amount,
      delegate,
      state: state === 1 ? 'initialized' : 'frozen',
      nativeReserve: isNative ? reserve : null,
      delegatedAmount,
      closeAuthority,
      extensions: readExtensions(data),
    }
  })
}

/** Undefined unless the bytes are an initialized mint. */
export function parseMint(data: Uint8Array): MintState | undefined {
  if (!hasLayout(data, MINT_BYTES, ACCOUNT_TYPE_MINT)) return undefined
  return parsable(() => {
    const read = new ByteReader(data)
    const mintAuthority = optionalKey(read)
    const supply = read.u64()
    const decimals = read.u8()
    if (!read.bool()) throw new BytesError('not initialized')
    const freezeAuthority = optionalKey(read)
    return { mintAuthority, supply, decimals, freezeAuthority, extensions: readExtensions(data) }
  })
}

/** Undefined unless the bytes are an initialized multisig. */
export function parseMultisig(data: Uint8Array): MultisigState | undefined {
  if (data.length !== MULTISIG_BYTES) return undefined
  return parsable(() => {
    const read = new ByteReader(data)
    const m = read.u8()
    const n = read.u8()
    if (!read.bool()) throw new BytesError('not initialized')
    const signers = Array.from({ length: MULTISIG_SIGNERS }, () => read.key()).filter((key) => key !== NO_KEY)
    return { m, n, signers }
  })
}

function hasLayout(data: Uint8Array, baseBytes: number, kind: number): boolean {
  if (data.length === baseBytes) return true
  if (data.length < TLV_OFFSET || data.length === MULTISIG_BYTES || data[ACCOUNT_TYPE_OFFSET] !== kind) return false
  return data.subarray(baseBytes, ACCOUNT_TYPE_OFFSET).every((byte) => byte === 0)
}

function readExtensions(data: Uint8Array): TokenExtension[] {
  const extensions: TokenExtension[] = []
  const read = new ByteReader(data, Math.min(TLV_OFFSET, data.length))
  while (read.remaining >= 4) {
    const type = read.u16()
    if (type === 0) break
    const length = read.u16()
    if (length > read.remaining) break
    extensions.push({ type, data: read.bytes(length) })
  }
  return extensions
}

/** The Token program's option: a tag of 32 bits, followed by the value's bytes in either case. */
function optionTag(read: ByteReader): boolean {
  const tag = read.u32()
  if (tag > 1) throw new BytesError('not an option')
  return tag === 1
}

function optionalKey(read: ByteReader): string | null {
  const isSome = optionTag(read)
  const key = read.key()
  return isSome ? key : null
}
