import {
  type SubscribeRequestFilterTransactions,
  TokenAccountExpansionControlFlag,
} from '../../../solana/gen/geyser_pb.ts'
import type { TransactionMeta } from '../../chain/model.ts'
import type { TransactionUpdate } from '../transaction-update.ts'
import { joinAddresses, parsePubkeys, parseSignature } from './keys.ts'
import { checkAny, checkPubkeyCount, FilterError, type TransactionFilterLimits } from './limits.ts'

export type TransactionMatcher = (update: TransactionUpdate) => boolean

export function compileTransactionFilter(
  filter: SubscribeRequestFilterTransactions,
  limits: TransactionFilterLimits,
): TransactionMatcher {
  checkAny(
    filter.vote === undefined &&
      filter.failed === undefined &&
      filter.signature === undefined &&
      filter.accountInclude.length === 0 &&
      filter.accountExclude.length === 0 &&
      filter.accountRequired.length === 0 &&
      !filter.cuckooAccountInclude,
    limits.any,
  )
  checkPubkeyCount(filter.accountInclude.length, limits.accountIncludeMax)
  checkPubkeyCount(filter.accountExclude.length, limits.accountExcludeMax)
  checkPubkeyCount(filter.accountRequired.length, limits.accountRequiredMax)
  const { vote, failed } = filter
  const signature = filter.signature === undefined ? undefined : parseSignature(filter.signature)
  const include = joinAddresses(
    parsePubkeys(filter.accountInclude, limits.accountIncludeReject),
    filter.cuckooAccountInclude,
    limits.cuckooBytesMax,
  )
  const exclude = parsePubkeys(filter.accountExclude)
  const required = parsePubkeys(filter.accountRequired)
  const namesAccounts = include !== undefined || exclude.size > 0 || required.size > 0
  const ownersOf = tokenOwners(filter.tokenAccounts)

  return (update) => {
    if (vote !== undefined && vote !== update.isVote) return false
    if (failed !== undefined && failed !== (update.record.meta.err !== null)) return false
    if (signature !== undefined && signature !== update.record.signature) return false
    if (!namesAccounts) return true
    const keys = ownersOf ? update.keys.union(ownersOf(update.record.meta)) : update.keys
    if (!keys.isDisjointFrom(exclude)) return false
    if (!required.isSubsetOf(keys)) return false
    return !include || (include.isListOnly ? !keys.isDisjointFrom(include.listed) : keys.values().some(include.has))
  }
}

type OwnersOf = (meta: TransactionMeta) => ReadonlySet<string>

/** The owners of all token balances, or only of balances that were changed, created or closed. */
function tokenOwners(flag: number | undefined): OwnersOf | undefined {
  switch (flag) {
    case undefined:
      return undefined
    case TokenAccountExpansionControlFlag.ALL:
      return (meta) => new Set([...meta.preTokenBalances, ...meta.postTokenBalances].map(({ owner }) => owner))
    case TokenAccountExpansionControlFlag.BALANCE_CHANGED:
      return changedOwners
    default:
      throw new FilterError(`unknown token_accounts ${flag}`)
  }
}

function changedOwners({ preTokenBalances, postTokenBalances }: TransactionMeta): ReadonlySet<string> {
  const before = new Map(preTokenBalances.map((balance) => [balance.accountIndex, balance]))
  const owners = new Set<string>()
  for (const after of postTokenBalances) {
    const old = before.get(after.accountIndex)
    before.delete(after.accountIndex)
    if (old?.amount === after.amount && old.owner === after.owner) continue
    owners.add(after.owner)
    if (old) owners.add(old.owner)
  }
  for (const { owner } of before.values()) owners.add(owner)
  return owners
}
