import type { SubscribeRequestFilterBlocks } from '../../../solana/gen/geyser_pb.ts'
import type { BlockParts, BlockUpdate } from '../block-update.ts'
import type { DataSlices } from '../data-slices.ts'
import { joinAddresses, parsePubkeys } from './keys.ts'
import { checkAny, checkPubkeyCount, FilterError, type FilterLimits } from './limits.ts'

/** Selects the parts of a block that this filter includes; every block matches. */
export type BlockSelector = (update: BlockUpdate, slices: DataSlices) => BlockParts

export function compileBlockFilter(
  filter: SubscribeRequestFilterBlocks,
  limits: FilterLimits['blocks'],
): BlockSelector {
  checkAny(filter.accountInclude.length === 0 && !filter.cuckooAccountInclude, limits.accountIncludeAny)
  checkPubkeyCount(filter.accountInclude.length, limits.accountIncludeMax)
  const { includeTransactions = true, includeAccounts = false, includeEntries = false } = filter
  if (includeTransactions && !limits.includeTransactions) throw notAllowed('transactions')
  if (includeAccounts && !limits.includeAccounts) throw notAllowed('accounts')
  if (includeEntries && !limits.includeEntries) throw notAllowed('entries')
  const wanted = joinAddresses(
    parsePubkeys(filter.accountInclude, limits.accountIncludeReject),
    filter.cuckooAccountInclude,
    limits.cuckooBytesMax,
  )

  return ({ transactions, accounts, entries }, slices) => ({
    slices,
    transactions: includeTransactions
      ? transactions.filter(({ keys }) => !wanted || keys.values().some(wanted.has))
      : undefined,
    accounts: includeAccounts ? accounts.filter(({ write }) => !wanted || wanted.has(write.address)) : undefined,
    entries: includeEntries ? entries : undefined,
  })
}

function notAllowed(what: string): FilterError {
  return new FilterError(`\`include_${what}\` is not allowed`)
}
