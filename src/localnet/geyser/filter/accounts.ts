import { Buffer } from 'node:buffer'
import { decodeBase58 } from '../../../solana/crypto/base58.ts'
import type {
  SubscribeRequestFilterAccounts,
  SubscribeRequestFilterAccountsFilter,
  SubscribeRequestFilterAccountsFilterLamports,
  SubscribeRequestFilterAccountsFilterMemcmp,
} from '../../../solana/gen/geyser_pb.ts'
import { isTokenAccountData } from '../../chain/token-account.ts'
import type { AccountUpdate } from '../account-update.ts'
import { joinAddresses, parsePubkeys } from './keys.ts'
import { checkAny, checkPubkeyCount, FilterError, type FilterLimits } from './limits.ts'

export type AccountMatcher = (update: AccountUpdate) => boolean
type StateMatcher = (data: Uint8Array, lamports: bigint) => boolean

const STATE_FILTERS_MAX = 4
const MEMCMP_BYTES_MAX = 128
/** Longer text decodes to more than 128 bytes. */
const MEMCMP_BASE58_CHARS_MAX = 175
const MEMCMP_BASE64_CHARS_MAX = 172
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** (account or cuckoo) and owner and every state filter and nonempty_txn_signature. */
export function compileAccountFilter(
  filter: SubscribeRequestFilterAccounts,
  limits: FilterLimits['accounts'],
): AccountMatcher {
  checkAny(filter.account.length === 0 && filter.owner.length === 0 && !filter.cuckooAccountsFilter, limits.any)
  checkPubkeyCount(filter.account.length, limits.accountMax)
  checkPubkeyCount(filter.owner.length, limits.ownerMax)
  const accounts = joinAddresses(
    parsePubkeys(filter.account, limits.accountReject),
    filter.cuckooAccountsFilter,
    limits.cuckooBytesMax,
  )
  const owners = parsePubkeys(filter.owner, limits.ownerReject)
  const states = compileStates(filter.filters)
  const { nonemptyTxnSignature } = filter

  return ({ write, account }) => {
    if (nonemptyTxnSignature !== undefined && nonemptyTxnSignature !== (write.signature !== undefined)) return false
    if (owners.size > 0 && !owners.has(account.owner)) return false
    if (accounts && !accounts.has(write.address)) return false
    return states.every((matches) => matches(account.data, account.lamports))
  }
}

function compileStates(filters: readonly SubscribeRequestFilterAccountsFilter[]): StateMatcher[] {
  if (filters.length > STATE_FILTERS_MAX) {
    throw new FilterError(`Too many filters provided; max ${STATE_FILTERS_MAX}`)
  }
  if (filters.filter(({ filter }) => filter.case === 'datasize').length > 1) {
    throw new FilterError('datasize used more than once')
  }
  return filters.map(({ filter }) => {
    switch (filter.case) {
      case 'memcmp':
        return compileMemcmp(filter.value)
      case 'datasize': {
        const size = filter.value
        return (data) => BigInt(data.length) === size
      }
      case 'tokenAccountState':
        if (!filter.value) throw new FilterError('token_account_state only allowed to be true')
        return isTokenAccountData
      case 'lamports':
        return compileLamports(filter.value)
      default:
        throw new FilterError('filter should be defined')
    }
  })
}

function compileMemcmp({ offset, data }: SubscribeRequestFilterAccountsFilterMemcmp): StateMatcher {
  const wanted = Buffer.from(memcmpBytes(data))
  if (wanted.length > MEMCMP_BYTES_MAX) throw new FilterError('data too large')
  // An offset too large for a double is still larger than any account.
  const from = Number(offset)
  return (found) => found.length >= from + wanted.length && wanted.compare(found, from, from + wanted.length) === 0
}

function memcmpBytes(data: SubscribeRequestFilterAccountsFilterMemcmp['data']): Uint8Array {
  switch (data.case) {
    case 'bytes':
      return data.value
    case 'base58':
      if (data.value.length > MEMCMP_BASE58_CHARS_MAX) throw new FilterError('data too large')
      try {
        return decodeBase58(data.value)
      } catch {
        throw new FilterError('invalid base58')
      }
    case 'base64':
      if (data.value.length > MEMCMP_BASE64_CHARS_MAX) throw new FilterError('data too large')
      if (!BASE64.test(data.value)) throw new FilterError('invalid base64')
      return Buffer.from(data.value, 'base64')
    default:
      throw new FilterError('data for memcmp should be defined')
  }
}

function compileLamports({ cmp }: SubscribeRequestFilterAccountsFilterLamports): StateMatcher {
  const { value } = cmp
  switch (cmp.case) {
    case 'eq':
      return (_, lamports) => lamports === value
    case 'ne':
      return (_, lamports) => lamports !== value
    case 'lt':
      return (_, lamports) => lamports < (value as bigint)
    case 'gt':
      return (_, lamports) => lamports > (value as bigint)
    default:
      throw new FilterError('cmp for lamports should be defined')
  }
}
