import { TokenBucket } from '../core/token-bucket.ts'
import type { Calendar } from './calendar.ts'
import { type Budget, budgetOf, type Charge, type Pot, type QuotaLedger, type QuotaView, wholeUnits } from './charge.ts'
import type { CallTerms, Terms } from './terms.ts'

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
  /** The month's units of subscriptions without an open account. */
  const spent = new Map<string, number>(options.spentBefore)
  let spentMonth = calendar.month

  function open(subscriptionId: string, terms: Terms, monotonicMs: number): Account {
    calendar.look(monotonicMs)
    let account = accounts.get(subscriptionId)
    if (account === undefined) {
      if (accounts.size >= accountsMax) putAwayOldest()
      turnMonth()
      account = new Account(terms, monotonicMs, calendar.month, spent.get(subscriptionId) ?? 0)
      accounts.set(subscriptionId, account)
    } else if (account.terms !== terms) account.adopt(terms, monotonicMs)
    if (account.month !== calendar.month) account.turn(calendar.month)
    return account
  }

  function turnMonth(): void {
    if (calendar.month > spentMonth) spent.clear()
    spentMonth = calendar.month
  }

  function putAway(subscriptionId: string, account: Account): void {
    turnMonth()
    accounts.delete(subscriptionId)
    if (account.month !== spentMonth) account.turn(spentMonth)
    if (account.used > 0) spent.set(subscriptionId, account.used)
    else spent.delete(subscriptionId)
  }

  function putAwayOldest(): void {
    for (const [subscriptionId, account] of accounts) return putAway(subscriptionId, account)
  }

  return {
    charge: (subscriptionId, terms, call, monotonicMs) =>
      open(subscriptionId, terms, monotonicMs).charge(call, monotonicMs, calendar),
    refund: (subscriptionId, terms, call, monotonicMs) =>
      open(subscriptionId, terms, monotonicMs).refund(call, monotonicMs),
    view: (subscriptionId, terms, monotonicMs) => open(subscriptionId, terms, monotonicMs).view(monotonicMs, calendar),
    sweep(monotonicMs) {
      for (const [subscriptionId, account] of accounts) {
        if (account.isFull(monotonicMs)) putAway(subscriptionId, account)
      }
    },
    accounts: () => accounts.size,
  }
}

/** The books of one subscription. */
class Account {
  terms: Terms
  month: number
  used: number
  #buckets: TokenBucket[]

  constructor(terms: Terms, monotonicMs: number, month: number, used: number) {
    this.terms = terms
    this.month = month
    this.used = used
    this.#buckets = terms.buckets.map((bucket) => new TokenBucket(bucket, monotonicMs))
  }

  /** New limits give nothing away: a bucket keeps what is in it, cut to its new size, and fills at the new rate. */
  adopt(terms: Terms, monotonicMs: number): void {
    const before = new Map(this.terms.buckets.map(({ key }, at) => [key, this.#buckets[at] as TokenBucket]))
    this.#buckets = terms.buckets.map((bucket) => {
      const kept = before.get(bucket.key)
      kept?.setLimits(bucket, monotonicMs)
      return kept ?? new TokenBucket(bucket, monotonicMs)
    })
    this.terms = terms
  }

  /** A later month begins at nothing spent. An earlier one, after a clock that was grossly wrong, goes on with what was. */
  turn(month: number): void {
    if (month > this.month) this.used = 0
    this.month = month
  }

  charge(call: CallTerms, monotonicMs: number, calendar: Calendar): Charge {
    const { draws, cost } = call
    let waitMs = 0
    let short = -1
    for (const { bucket, amount } of draws) {
      const needMs = this.#bucket(bucket).waitMs(amount, monotonicMs)
      if (needMs > waitMs) {
        waitMs = needMs
        short = bucket
      }
    }
    const { unitsPerMonth } = this.terms
    const isOverMonth = unitsPerMonth !== null && this.used + cost > unitsPerMonth
    if (isOverMonth || short !== -1) return this.#refuse(cost, { waitMs, short, isOverMonth }, monotonicMs, calendar)
    for (const { bucket, amount } of draws) this.#bucket(bucket).take(amount, monotonicMs)
    this.used += cost
    const { limit, remaining, resetMs } = this.#budget(monotonicMs, calendar)
    return { ok: true, cost, limit, remaining, resetMs }
  }

  #refuse(
    cost: number,
    found: { waitMs: number; short: number; isOverMonth: boolean },
    monotonicMs: number,
    calendar: Calendar,
  ): Charge {
    const budget = this.#budget(monotonicMs, calendar)
    const { unitsPerMonth } = this.terms
    const monthMs = calendar.untilNextMonthMs(monotonicMs)
    // Of several limits the one that keeps the caller waiting longest is named.
    if (unitsPerMonth !== null && found.isOverMonth && (found.short === -1 || monthMs >= found.waitMs)) {
      const retryAfterMs = cost > unitsPerMonth ? Number.POSITIVE_INFINITY : monthMs
      return {
        ok: false,
        reason: 'over-limit',
        limitName: 'unitsPerMonth',
        limitSize: unitsPerMonth,
        cost,
        retryAfterMs,
        ...budget,
      }
    }
    const { limit: limitName = 'unitsPerSecond', perSecond: limitSize = 0 } = this.terms.buckets[found.short] ?? {}
    return { ok: false, reason: 'over-limit', limitName, limitSize, cost, retryAfterMs: found.waitMs, ...budget }
  }

  refund({ draws, cost }: CallTerms, monotonicMs: number): void {
    for (const { bucket, amount } of draws) this.#buckets[bucket]?.giveBack(amount, monotonicMs)
    this.used = Math.max(0, this.used - cost)
  }

  view(monotonicMs: number, calendar: Calendar): QuotaView {
    return {
      ...this.#budget(monotonicMs, calendar),
      month: { limit: this.terms.unitsPerMonth, used: this.used, resetMs: calendar.untilNextMonthMs(monotonicMs) },
      buckets: this.terms.buckets.map(({ limit, key, perSecond, capacity }, at) => ({
        limit,
        method: limit === 'methodPerSecond' ? key.slice(key.indexOf(':') + 1) : undefined,
        perSecond,
        capacity,
        remaining: wholeUnits(this.#bucket(at).level(monotonicMs)),
        resetMs: this.#bucket(at).fullInMs(monotonicMs),
      })),
    }
  }

  isFull(monotonicMs: number): boolean {
    return this.#buckets.every((bucket) => bucket.fullInMs(monotonicMs) === 0)
  }

  #bucket(at: number): TokenBucket {
    return this.#buckets[at] as TokenBucket
  }

  #budget(monotonicMs: number, calendar: Calendar): Budget {
    const { unitsBucket, unitsPerMonth, buckets } = this.terms
    let units: Pot | undefined
    if (unitsBucket !== -1) {
      const bucket = this.#bucket(unitsBucket)
      const size = buckets[unitsBucket]?.capacity ?? 0
      units = { size, left: bucket.level(monotonicMs), resetMs: bucket.fullInMs(monotonicMs) }
    }
    if (unitsPerMonth === null) return budgetOf(units, undefined)
    const month = {
      size: unitsPerMonth,
      left: unitsPerMonth - this.used,
      resetMs: calendar.untilNextMonthMs(monotonicMs),
    }
    return budgetOf(units, month)
  }
}
