import type { LimitName } from '../../contract/limits.ts'
import type { BucketTerms, CallTerms, Terms } from '../terms.ts'
import type { Calendar } from './calendar.ts'
import {
  type Budget,
  type Charge,
  type OverLimit,
  type QuotaAccount,
  type QuotaLedger,
  type QuotaView,
  wholeUnits,
} from './charge.ts'

/** More subscriptions than this are not kept at once: the one opened first is put away, as if it had been idle. */
const ACCOUNTS_MAX = 250_000

export type LedgerOptions = {
  readonly calendar: Calendar
  /** Units spent this month before this process began, from the store. */
  readonly spentBefore?: ReadonlyMap<string, number>
  readonly accountsMax?: number
}

export type Ledger = QuotaLedger & { accounts(): number }

/** The books of one process, in memory. Exact: what was charged is what was admitted. */
export function createLedger(options: LedgerOptions): Ledger {
  const { calendar, accountsMax = ACCOUNTS_MAX } = options
  const accounts = new Map<string, Account>()
  /** The month's units of subscriptions whose books are closed. */
  const spent = new Map<string, number>(options.spentBefore)
  let spentMonth = calendar.month

  function turnMonth(): void {
    if (calendar.month > spentMonth) spent.clear()
    spentMonth = calendar.month
  }

  function close(subscriptionId: string, account: Account): void {
    turnMonth()
    accounts.delete(subscriptionId)
    const used = account.close()
    if (used > 0) spent.set(subscriptionId, used)
    else spent.delete(subscriptionId)
  }

  function closeOldest(): void {
    for (const [subscriptionId, account] of accounts) return close(subscriptionId, account)
  }

  return {
    open(subscriptionId, terms, monotonicMs) {
      const known = accounts.get(subscriptionId)
      if (known !== undefined) return known
      if (accounts.size >= accountsMax) closeOldest()
      calendar.look(monotonicMs)
      turnMonth()
      const account = new Account(calendar, terms, monotonicMs, spent.get(subscriptionId) ?? 0)
      accounts.set(subscriptionId, account)
      return account
    },
    sweep(monotonicMs) {
      calendar.look(monotonicMs)
      for (const [subscriptionId, account] of accounts) {
        if (account.isFull(monotonicMs)) close(subscriptionId, account)
      }
    },
    accounts: () => accounts.size,
  }
}

/**
 * The books of one subscription. `#levels` holds the time of the last refill and after it one level for each bucket: one array of plain
 * numbers, because ten thousand of these are walked through in turn and every further object is another miss of the cache.
 */
class Account implements QuotaAccount {
  isOpen = true
  readonly #calendar: Calendar
  #terms: Terms
  #month: number
  #used: number
  #levels: number[]

  constructor(calendar: Calendar, terms: Terms, monotonicMs: number, used: number) {
    this.#calendar = calendar
    this.#terms = terms
    this.#month = calendar.month
    this.#used = used
    this.#levels = [Math.floor(monotonicMs), ...terms.buckets.map(({ capacityParts }) => capacityParts)]
  }

  /** Ends these books and gives what the month has cost so far. */
  close(): number {
    this.isOpen = false
    this.#turn()
    return this.#used
  }

  charge(terms: Terms, call: CallTerms, monotonicMs: number): Charge {
    this.#settle(terms, monotonicMs)
    const { draws, cost } = call
    const levels = this.#levels
    let isShort = terms.unitsPerMonth !== null && this.#used + cost > terms.unitsPerMonth
    for (const { bucket, parts } of draws) {
      if (parts > (levels[bucket + 1] as number)) isShort = true
    }
    if (isShort) return this.#refuse(call, monotonicMs)
    for (const { bucket, parts } of draws) levels[bucket + 1] = (levels[bucket + 1] as number) - parts
    this.#used += cost
    return this.#reported({ ok: true, cost, limit: null, remaining: null, resetMs: 0 }, monotonicMs)
  }

  /** Of several limits the one that keeps the caller waiting longest is named. */
  #refuse({ draws, cost }: CallTerms, monotonicMs: number): OverLimit {
    const { buckets, unitsPerMonth } = this.#terms
    let limitName: LimitName = 'unitsPerMonth'
    let limitSize = 0
    let retryAfterMs = 0
    for (const { bucket, parts } of draws) {
      const needMs = this.#msUntil(bucket, parts)
      if (needMs <= retryAfterMs) continue
      const { limit, perSecond } = buckets[bucket] as BucketTerms
      limitName = limit
      limitSize = perSecond
      retryAfterMs = needMs
    }
    if (unitsPerMonth !== null && this.#used + cost > unitsPerMonth) {
      const needMs = cost > unitsPerMonth ? Number.POSITIVE_INFINITY : this.#calendar.untilNextMonthMs(monotonicMs)
      if (needMs >= retryAfterMs) {
        limitName = 'unitsPerMonth'
        limitSize = unitsPerMonth
        retryAfterMs = needMs
      }
    }
    const refused = { ok: false, reason: 'over-limit', limitName, limitSize, cost, retryAfterMs } as const
    return this.#reported({ ...refused, limit: null, remaining: null, resetMs: 0 }, monotonicMs)
  }

  refund(terms: Terms, { draws, cost }: CallTerms, monotonicMs: number): void {
    this.#calendar.look(monotonicMs)
    this.#turn()
    this.#used = Math.max(0, this.#used - cost)
    // Where the limits have changed since, the bucket it was taken from may be another; the month's units are right all the same.
    if (terms !== this.#terms) return
    this.#refill(monotonicMs)
    for (const { bucket, parts } of draws) {
      const { capacityParts } = terms.buckets[bucket] as BucketTerms
      this.#levels[bucket + 1] = Math.min(capacityParts, (this.#levels[bucket + 1] as number) + parts)
    }
  }

  view(terms: Terms, monotonicMs: number): QuotaView {
    this.#settle(terms, monotonicMs)
    return {
      ...this.#reported({ limit: null, remaining: null, resetMs: 0 }, monotonicMs),
      month: { limit: terms.unitsPerMonth, used: this.#used, resetMs: this.#calendar.untilNextMonthMs(monotonicMs) },
      buckets: terms.buckets.map(({ limit, key, perSecond, capacity, capacityParts, partsPerUnit }, bucket) => ({
        limit,
        method: limit === 'methodPerSecond' ? key.slice(key.indexOf(':') + 1) : undefined,
        perSecond,
        capacity,
        remaining: wholeUnits((this.#levels[bucket + 1] as number) / partsPerUnit),
        resetMs: this.#msUntil(bucket, capacityParts),
      })),
    }
  }

  isFull(monotonicMs: number): boolean {
    this.#refill(monotonicMs)
    return this.#terms.buckets.every(({ capacityParts }, bucket) => this.#levels[bucket + 1] === capacityParts)
  }

  /** Brings month, limits and levels up to date. */
  #settle(terms: Terms, monotonicMs: number): void {
    this.#calendar.look(monotonicMs)
    if (this.#month !== this.#calendar.month) this.#turn()
    this.#refill(monotonicMs)
    if (this.#terms !== terms) this.#adopt(terms)
  }

  /** A later month begins at nothing spent. An earlier one, after a clock that was grossly wrong, goes on with what was. */
  #turn(): void {
    if (this.#calendar.month > this.#month) this.#used = 0
    this.#month = this.#calendar.month
  }

  #refill(monotonicMs: number): void {
    const levels = this.#levels
    const nowMs = Math.floor(monotonicMs)
    const elapsedMs = nowMs - (levels[0] as number)
    if (elapsedMs <= 0) return
    levels[0] = nowMs
    const { buckets } = this.#terms
    for (let bucket = 0; bucket < buckets.length; bucket++) {
      const { capacityParts, partsPerMs } = buckets[bucket] as BucketTerms
      levels[bucket + 1] = Math.min(capacityParts, (levels[bucket + 1] as number) + elapsedMs * partsPerMs)
    }
  }

  /** With new limits a full bucket is full; any other keeps the units that are in it, cut to its new size, and fills at the new rate. */
  #adopt(terms: Terms): void {
    const before = this.#terms.buckets
    const levels = terms.buckets.map(({ key, capacityParts, partsPerUnit }) => {
      const at = before.findIndex((bucket) => bucket.key === key)
      const level = this.#levels[at + 1] as number
      const old = before[at]
      if (old === undefined || level >= old.capacityParts) return capacityParts
      return Math.min(capacityParts, Math.floor((level / old.partsPerUnit) * partsPerUnit))
    })
    this.#levels = [this.#levels[0] as number, ...levels]
    this.#terms = terms
  }

  #msUntil(bucket: number, parts: number): number {
    const { capacityParts, partsPerMs } = this.#terms.buckets[bucket] as BucketTerms
    const missing = parts - (this.#levels[bucket + 1] as number)
    if (missing <= 0) return 0
    return parts > capacityParts || partsPerMs === 0 ? Number.POSITIVE_INFINITY : Math.ceil(missing / partsPerMs)
  }

  /** Completes an answer with the tighter of the two: bucket of units or the month. Fills it in place, as every call has one. */
  #reported<Response extends Writable<Budget>>(response: Response, monotonicMs: number): Response {
    const { unitsBucket, unitsPerMonth, buckets } = this.#terms
    const bucket = buckets[unitsBucket]
    const left =
      bucket === undefined ? Number.POSITIVE_INFINITY : (this.#levels[unitsBucket + 1] as number) / bucket.partsPerUnit
    if (unitsPerMonth !== null && unitsPerMonth - this.#used < left) {
      response.limit = unitsPerMonth
      response.remaining = wholeUnits(unitsPerMonth - this.#used)
      response.resetMs = this.#calendar.untilNextMonthMs(monotonicMs)
    } else if (bucket !== undefined) {
      response.limit = bucket.capacity
      response.remaining = wholeUnits(left)
      response.resetMs = this.#msUntil(unitsBucket, bucket.capacityParts)
    }
    return response
  }
}

type Writable<T> = { -readonly [Name in keyof T]: T[Name] }
