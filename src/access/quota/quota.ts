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

/** Open accounts; beyond it the oldest is closed as if it were idle. */
const ACCOUNTS_MAX = 250_000

export type LedgerOptions = {
  readonly calendar: Calendar
  /** Units spent this month before the process started, from the store. */
  readonly spentBefore?: ReadonlyMap<string, number>
  readonly accountsMax?: number
}

export type Ledger = QuotaLedger & { accounts(): number }

/** The ledger of one process, in memory. Exact: units charged equal units admitted. */
export function createLedger(options: LedgerOptions): Ledger {
  const { calendar, accountsMax = ACCOUNTS_MAX } = options
  const accounts = new Map<string, Account>()
  /** Units of the month of subscriptions whose account is closed. */
  const spent = new Map<string, number>(options.spentBefore)
  let spentMonth = calendar.month

  function rollMonth(): void {
    if (calendar.month > spentMonth) spent.clear()
    spentMonth = calendar.month
  }

  function close(subscriptionId: string, account: Account): void {
    rollMonth()
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
      calendar.update(monotonicMs)
      rollMonth()
      const account = new Account(calendar, terms, monotonicMs, spent.get(subscriptionId) ?? 0)
      accounts.set(subscriptionId, account)
      return account
    },
    sweep(monotonicMs) {
      calendar.update(monotonicMs)
      for (const [subscriptionId, account] of accounts) {
        if (account.isFull(monotonicMs)) close(subscriptionId, account)
      }
    },
    accounts: () => accounts.size,
  }
}

/**
 * The account of one subscription. `#levels` contains the time of the last refill followed by the level of each bucket: one array of numbers,
 * because with ten thousand accounts every further object is another cache miss.
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

  /** Closes the account and returns the units of the month. */
  close(): number {
    this.isOpen = false
    this.#rollMonth()
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
    return this.#withBudget({ ok: true, cost, limit: null, remaining: null, resetMs: 0 }, monotonicMs)
  }

  /** Names the limit with the longest wait. */
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
    return this.#withBudget({ ...refused, limit: null, remaining: null, resetMs: 0 }, monotonicMs)
  }

  refund(terms: Terms, { draws, cost }: CallTerms, monotonicMs: number): void {
    this.#calendar.update(monotonicMs)
    this.#rollMonth()
    this.#used = Math.max(0, this.#used - cost)
    // After a change of limits the bucket may be a different one, so only the units of the month are refunded.
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
      ...this.#withBudget({ limit: null, remaining: null, resetMs: 0 }, monotonicMs),
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

  /** Updates month, limits and levels. */
  #settle(terms: Terms, monotonicMs: number): void {
    this.#calendar.update(monotonicMs)
    if (this.#month !== this.#calendar.month) this.#rollMonth()
    this.#refill(monotonicMs)
    if (this.#terms !== terms) this.#adopt(terms)
  }

  /** A later month starts at 0. An earlier month, after a grossly wrong clock, keeps the units spent. */
  #rollMonth(): void {
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

  /** Applies new limits: a full bucket stays full; any other keeps its level, up to the new capacity. */
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

  /** Fills in the tighter of units bucket and month. In place, because every call has one. */
  #withBudget<Response extends Writable<Budget>>(response: Response, monotonicMs: number): Response {
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
