import { Buffer } from 'node:buffer'
import {
  CommitmentLevel,
  type SubscribeRequest,
  type SubscribeRequestAccountsDataSlice,
} from '../../../solana/gen/geyser_pb.ts'
import { encodeFilterName } from '../../../solana/geyser/update-envelope.ts'
import type { Commitment } from '../../chain/model.ts'
import type { DataSlices } from '../data-slices.ts'
import type { SlotStage } from '../slot-update.ts'
import { type AccountMatcher, compileAccountFilter } from './accounts.ts'
import { type BlockSelector, compileBlockFilter } from './blocks.ts'
import { checkFilterCount, FilterError, type FilterLimits } from './limits.ts'
import { compileTransactionFilter, type TransactionMatcher } from './transactions.ts'

/** A filter with its name, encoded as an entry of `SubscribeUpdate.filters`. */
export type Named<Filter> = { readonly name: Uint8Array; readonly filter: Filter }
export type SlotMatcher = (stage: SlotStage) => boolean

/** A compiled SubscribeRequest: the filters for every kind of update. */
export type StreamFilter = {
  readonly commitment: Commitment
  readonly slices: DataSlices
  readonly accounts: readonly Named<AccountMatcher>[]
  readonly slots: readonly Named<SlotMatcher>[]
  readonly transactions: readonly Named<TransactionMatcher>[]
  readonly transactionsStatus: readonly Named<TransactionMatcher>[]
  readonly entries: readonly Named<undefined>[]
  readonly blocks: readonly Named<BlockSelector>[]
  readonly blocksMeta: readonly Named<undefined>[]
  readonly blockFooter: readonly Named<undefined>[]
}

export const EMPTY_FILTER: StreamFilter = {
  commitment: 'processed',
  slices: [],
  accounts: [],
  slots: [],
  transactions: [],
  transactionsStatus: [],
  entries: [],
  blocks: [],
  blocksMeta: [],
  blockFooter: [],
}

export type FilterOutcome =
  | { readonly ok: true; readonly filter: StreamFilter }
  | { readonly ok: false; readonly reason: string }

export function compileFilter(request: SubscribeRequest, limits: FilterLimits): FilterOutcome {
  try {
    return { ok: true, filter: compile(request, limits) }
  } catch (error) {
    if (error instanceof FilterError) return { ok: false, reason: error.message }
    throw error
  }
}

function compile(request: SubscribeRequest, limits: FilterLimits): StreamFilter {
  const commitment = commitmentOf(request.commitment)
  const names = new Set<string>()

  function each<Filter, Compiled>(
    filters: { readonly [name: string]: Filter },
    max: number,
    compileOne: (filter: Filter) => Compiled,
  ): Named<Compiled>[] {
    const entries = Object.entries(filters)
    checkFilterCount(entries.length, max)
    return entries.map(([name, filter]) => {
      checkName(name, names, limits)
      return { name: encodeFilterName(name), filter: compileOne(filter) }
    })
  }

  return {
    commitment,
    slices: compileSlices(request.accountsDataSlice, limits.accounts.dataSliceMax),
    accounts: each(request.accounts, limits.accounts.max, (filter) => compileAccountFilter(filter, limits.accounts)),
    slots: each(
      request.slots,
      limits.slots.max,
      ({ filterByCommitment = false, interslotUpdates = false }) =>
        (stage) =>
          (!filterByCommitment || stage === commitment) && (interslotUpdates || isCommitmentStage(stage)),
    ),
    transactions: each(request.transactions, limits.transactions.max, (filter) =>
      compileTransactionFilter(filter, limits.transactions),
    ),
    transactionsStatus: each(request.transactionsStatus, limits.transactionsStatus.max, (filter) =>
      compileTransactionFilter(filter, limits.transactionsStatus),
    ),
    entries: each(request.entry, limits.entries.max, () => undefined),
    blocks: each(request.blocks, limits.blocks.max, (filter) => compileBlockFilter(filter, limits.blocks)),
    blocksMeta: each(request.blocksMeta, limits.blocksMeta.max, () => undefined),
    blockFooter: each(request.blockFooter, limits.blockFooter.max, () => undefined),
  }
}

/** An absent level means processed. The enum is open on the wire: any number can arrive. */
export function commitmentOf(level: number | undefined): Commitment {
  switch (level) {
    case undefined:
    case CommitmentLevel.PROCESSED:
      return 'processed'
    case CommitmentLevel.CONFIRMED:
      return 'confirmed'
    case CommitmentLevel.FINALIZED:
      return 'finalized'
    default:
      throw new FilterError(`failed to create CommitmentLevel from ${level}`)
  }
}

function isCommitmentStage(stage: SlotStage): boolean {
  return stage === 'processed' || stage === 'confirmed' || stage === 'finalized'
}

function compileSlices(slices: readonly SubscribeRequestAccountsDataSlice[], max: number): DataSlices {
  checkFilterCount(slices.length, max)
  const compiled = slices.map(({ offset, length }) => ({ offset: Number(offset), length: Number(length) }))
  for (const [index, slice] of compiled.entries()) {
    const before = compiled[index - 1]
    if (!before) continue
    if (slice.offset < before.offset) throw new FilterError('data slices out of order')
    if (slice.offset < before.offset + before.length) throw new FilterError('data slices overlapped')
  }
  return compiled
}

function checkName(name: string, names: Set<string>, limits: FilterLimits): void {
  const bytes = Buffer.byteLength(name)
  if (bytes > limits.nameBytesMax) {
    throw new FilterError(`oversized filter name (max allowed size ${limits.nameBytesMax}), found ${bytes}`)
  }
  names.add(name)
  if (names.size > limits.namesMax) throw new FilterError(`too many filter names, max ${limits.namesMax} allowed`)
}
