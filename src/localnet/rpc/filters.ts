import { Buffer } from 'node:buffer'
import { decodeBase58 } from '../../solana/crypto/base58.ts'
import type { Account } from '../chain/model.ts'
import { isTokenAccountData } from '../chain/token-account.ts'
import { invalidParams } from './errors.ts'
import * as read from './params.ts'
import { decodeBase64, describeBase58Fault } from './text-codecs.ts'

/** A filter of getProgramAccounts and programSubscribe as received. */
export type AccountFilter =
  | { readonly kind: 'dataSize'; readonly size: bigint }
  | { readonly kind: 'tokenAccountState' }
  | {
      readonly kind: 'memcmp'
      readonly offset: bigint
      readonly bytes: string | Uint8Array
      readonly encoding: 'base58' | 'base64' | 'bytes'
    }

/** Compiled filters. */
export type AccountMatcher = (account: Account) => boolean

const FILTERS_MAX = 4
const MEMCMP_BYTES_MAX = 128
const MEMCMP_BASE58_CHARS_MAX = 175
const MEMCMP_BASE64_CHARS_MAX = 172

const KINDS = ['dataSize', 'memcmp', 'tokenAccountState']

export const accountFilter: read.Decode<AccountFilter> = (value) => {
  if (value === 'tokenAccountState') return { kind: 'tokenAccountState' }
  if (typeof value === 'string') throw read.unknownVariant(value, KINDS)
  if (!read.isObject(value)) throw read.wrongType(value, 'string or map')
  const members = Object.keys(value)
  const [kind] = members
  if (members.length !== 1 || kind === undefined) throw read.wrongType(value, 'map with a single key')
  if (kind === 'dataSize') return { kind, size: read.u64(value[kind]) }
  if (kind === 'memcmp') return decodeMemcmp(value[kind])
  if (kind === 'tokenAccountState') return { kind }
  throw read.unknownVariant(kind, KINDS)
}

const memcmpShape = read.struct('Memcmp', {
  offset: read.required('offset', read.usize),
  bytes: read.required('bytes', read.either('DataType', read.string, read.listOf(read.u8))),
  encoding: read.optional(read.oneOf('base58', 'base64', 'bytes')),
})

function decodeMemcmp(value: unknown): AccountFilter {
  const { offset, bytes, encoding } = memcmpShape(value)
  if (typeof bytes !== 'string') return { kind: 'memcmp', offset, bytes: Uint8Array.from(bytes), encoding: 'bytes' }
  return { kind: 'memcmp', offset, bytes, encoding: encoding === 'base64' ? 'base64' : 'base58' }
}

/** Matches accounts that pass all filters. Throws RpcError -32602 where there are too many or one cannot be decoded. */
export function createMatcher(filters: readonly AccountFilter[]): AccountMatcher {
  if (filters.length > FILTERS_MAX) throw invalidParams(`Too many filters provided; max ${FILTERS_MAX}`)
  const matchers = filters.map(createSingleMatcher)
  return (account) => matchers.every((matches) => matches(account))
}

function createSingleMatcher(filter: AccountFilter): AccountMatcher {
  switch (filter.kind) {
    case 'dataSize':
      return ({ data }) => BigInt(data.length) === filter.size
    case 'tokenAccountState':
      return ({ data }) => isTokenAccountData(data)
    case 'memcmp': {
      const bytes = Buffer.from(decodeBytes(filter))
      const offset = Number(filter.offset)
      return ({ data }) =>
        offset + bytes.length <= data.length && bytes.equals(data.subarray(offset, offset + bytes.length))
    }
  }
}

function decodeBytes({ bytes, encoding }: AccountFilter & { kind: 'memcmp' }): Uint8Array {
  const decoded = typeof bytes === 'string' ? decodeText(bytes, encoding) : bytes
  if (decoded.length > MEMCMP_BYTES_MAX) throw invalidParams('Invalid param: DataTooLarge')
  return decoded
}

function decodeText(text: string, encoding: 'base58' | 'base64' | 'bytes'): Uint8Array {
  if (encoding === 'base64') {
    if (text.length > MEMCMP_BASE64_CHARS_MAX) throw invalidParams('Invalid param: DataTooLarge')
    const decoded = decodeBase64(text)
    if (!decoded.ok) throw invalidParams(`Invalid param: Base64DecodeError(${decoded.fault})`)
    return decoded.bytes
  }
  if (text.length > MEMCMP_BASE58_CHARS_MAX) throw invalidParams('Invalid param: DataTooLarge')
  try {
    return decodeBase58(text)
  } catch {
    throw invalidParams(`Invalid param: Base58DecodeError(${describeBase58Fault(text)})`)
  }
}
