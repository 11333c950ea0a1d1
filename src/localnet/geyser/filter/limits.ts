/** Limits of one SubscribeRequest; the keys are those of the Yellowstone plugin's configuration. */
export type FilterLimits = {
  readonly nameBytesMax: number
  readonly namesMax: number
  readonly accounts: {
    readonly max: number
    /** Whether a filter without account, owner or cuckoo filter is allowed. */
    readonly any: boolean
    readonly accountMax: number
    readonly accountReject: ReadonlySet<string>
    readonly ownerMax: number
    readonly ownerReject: ReadonlySet<string>
    readonly dataSliceMax: number
    readonly cuckooBytesMax: number
  }
  readonly slots: { readonly max: number }
  readonly transactions: TransactionFilterLimits
  readonly transactionsStatus: TransactionFilterLimits
  readonly entries: { readonly max: number }
  readonly blocks: {
    readonly max: number
    readonly accountIncludeMax: number
    readonly accountIncludeAny: boolean
    readonly accountIncludeReject: ReadonlySet<string>
    readonly includeTransactions: boolean
    readonly includeAccounts: boolean
    readonly includeEntries: boolean
    readonly cuckooBytesMax: number
  }
  readonly blocksMeta: { readonly max: number }
  readonly blockFooter: { readonly max: number }
}

export type TransactionFilterLimits = {
  readonly max: number
  readonly any: boolean
  readonly accountIncludeMax: number
  readonly accountIncludeReject: ReadonlySet<string>
  readonly accountExcludeMax: number
  readonly accountRequiredMax: number
  readonly cuckooBytesMax: number
}

const NONE: ReadonlySet<string> = new Set()
const MAX = Number.MAX_SAFE_INTEGER

const TRANSACTIONS: TransactionFilterLimits = {
  max: MAX,
  any: true,
  accountIncludeMax: MAX,
  accountIncludeReject: NONE,
  accountExcludeMax: MAX,
  accountRequiredMax: MAX,
  cuckooBytesMax: MAX,
}

/** The plugin's defaults: names are short, everything else is bounded only by the message size. */
export const DEFAULT_FILTER_LIMITS: FilterLimits = {
  nameBytesMax: 128,
  namesMax: 4096,
  accounts: {
    max: MAX,
    any: true,
    accountMax: MAX,
    accountReject: NONE,
    ownerMax: MAX,
    ownerReject: NONE,
    dataSliceMax: MAX,
    cuckooBytesMax: MAX,
  },
  slots: { max: MAX },
  transactions: TRANSACTIONS,
  transactionsStatus: TRANSACTIONS,
  entries: { max: MAX },
  blocks: {
    max: MAX,
    accountIncludeMax: MAX,
    accountIncludeAny: true,
    accountIncludeReject: NONE,
    includeTransactions: true,
    includeAccounts: true,
    includeEntries: true,
    cuckooBytesMax: MAX,
  },
  blocksMeta: { max: MAX },
  blockFooter: { max: MAX },
}

/** A refused request; the message is that of the Yellowstone plugin. */
export class FilterError extends Error {}

export function checkFilterCount(count: number, max: number): void {
  if (count > max) throw new FilterError(`Max amount of filters/data_slices reached, only ${max} allowed`)
}

export function checkAny(isFullStream: boolean, anyAllowed: boolean): void {
  if (isFullStream && !anyAllowed) {
    throw new FilterError('Subscribe on full stream with `any` is not allowed, at least one filter required')
  }
}

export function checkPubkeyCount(count: number, max: number): void {
  if (count > max) throw new FilterError(`Max amount of Pubkeys reached, only ${max} allowed`)
}
