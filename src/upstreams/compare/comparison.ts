import { LeadHistogram, type LeadSummary } from './lead-histogram.ts'

/** The two streams of a comparison. */
export type Side = 'first' | 'second'

export type ComparisonOptions = {
  /** A transaction that only one stream has delivered counts as missing in the other after this time. */
  readonly settleMs: number
  /** Transactions remembered; beyond it the oldest is forgotten, and counts as missing in the other stream if it was. */
  readonly transactionsMax: number
}

export type ComparisonResult = {
  /** Transactions that were compared: delivered by both streams, or by one only. */
  readonly transactions: number
  readonly both: number
  readonly firstEarlier: number
  readonly secondEarlier: number
  readonly onlyFirst: number
  readonly onlySecond: number
  /** Delivered by one stream so recently that the other may still follow: not compared. */
  readonly pending: number
  /** Further deliveries of a transaction by the same stream. */
  readonly repeated: { readonly first: number; readonly second: number }
  /** Share of all compared transactions that the stream delivered earlier, or alone; undefined without any. */
  readonly firstShare: number | undefined
  readonly secondShare: number | undefined
  /** How much earlier the first stream was, of transactions that both delivered; negative where the second was. */
  readonly leadMs: LeadSummary | undefined
}

type Seen = { readonly by: Side; readonly atMs: number; readonly isCounted: boolean; isInBoth: boolean }

/**
 * Compares two streams by the time at which each delivers a transaction. What comes before both have delivered for `settleMs` is not compared,
 * because one of them may have begun later; nor is what first comes after `stopCounting`.
 */
export class StreamComparison {
  readonly #options: ComparisonOptions
  /** By signature, the oldest first. */
  readonly #seen = new Map<string, Seen>()
  readonly #leads = new LeadHistogram()
  readonly #startedMs: Partial<Record<Side, number>> = {}
  readonly #repeated = { first: 0, second: 0 }
  #only = { first: 0, second: 0 }
  #earlier = { first: 0, second: 0 }
  #isStopped = false

  constructor(options: ComparisonOptions) {
    this.#options = options
  }

  /** The time from which transactions count; undefined until both streams have delivered one. */
  get countsFromMs(): number | undefined {
    const { first, second } = this.#startedMs
    return first === undefined || second === undefined ? undefined : Math.max(first, second) + this.#options.settleMs
  }

  add(side: Side, signature: string, atMs: number): void {
    this.#startedMs[side] ??= atMs
    const seen = this.#seen.get(signature)
    if (seen === undefined) return this.#remember(signature, side, atMs)
    if (seen.by === side || seen.isInBoth) {
      if (seen.by === side) this.#repeated[side] += 1
      return
    }
    seen.isInBoth = true
    if (!seen.isCounted) return
    const leadMs = atMs - seen.atMs
    this.#earlier[seen.by] += 1
    this.#leads.add(seen.by === 'first' ? leadMs : -leadMs)
  }

  /** Transactions that come from now on are matched with those known, and not counted themselves. */
  stopCounting(): void {
    this.#isStopped = true
  }

  result(nowMs: number): ComparisonResult {
    const only = { ...this.#only }
    let pending = 0
    for (const { by, atMs, isCounted, isInBoth } of this.#seen.values()) {
      if (!isCounted || isInBoth) continue
      if (nowMs - atMs < this.#options.settleMs) pending += 1
      else only[by] += 1
    }
    const { first: firstEarlier, second: secondEarlier } = this.#earlier
    const both = firstEarlier + secondEarlier
    const transactions = both + only.first + only.second
    const shareOf = (count: number) => (transactions === 0 ? undefined : count / transactions)
    return {
      transactions,
      both,
      firstEarlier,
      secondEarlier,
      onlyFirst: only.first,
      onlySecond: only.second,
      pending,
      repeated: { ...this.#repeated },
      firstShare: shareOf(firstEarlier + only.first),
      secondShare: shareOf(secondEarlier + only.second),
      leadMs: this.#leads.summary(),
    }
  }

  #remember(signature: string, by: Side, atMs: number): void {
    const fromMs = this.countsFromMs
    const isCounted = !this.#isStopped && fromMs !== undefined && atMs >= fromMs
    this.#seen.set(signature, { by, atMs, isCounted, isInBoth: false })
    if (this.#seen.size <= this.#options.transactionsMax) return
    const [oldest, seen] = this.#seen.entries().next().value as [string, Seen]
    this.#seen.delete(oldest)
    if (seen.isCounted && !seen.isInBoth) this.#only[seen.by] += 1
  }
}
