import type { LimitName } from '../../contract/limits.ts'
import type { BucketTerms, CallTerms, Terms } from '../terms.ts'
import type { Calendar } from './calendar.ts'
import { type Budget, type Charge, type OverLimit, type QuotaAccount, type QuotaView, wholeUnits } from './charge.ts'
import type { Booked, Booking } from './redis-script.ts'

/** The shortest interval between bookings that only refresh the level, and the retry time of a call that waits for a booking. */
const REBOOK_MS = 50

/** The part of the ledger that an account uses. */
export type AccountLedger = {
  readonly calendar: Calendar
  /** The account has units to book. */
  markUnbooked(account: SharedAccount): void
  /** The account should be booked as soon as possible. */
  requestBooking(account: SharedAccount): void
}

/** A booking in flight, and the units per bucket that are waived when it succeeds. */
export type SentBooking = { readonly booking: Booking; readonly waived: readonly number[] }

/** Both only grow, except for refunds and waived units; the difference is unbooked. Kept while a limit is absent, since it may return. */
type Tally = { spent: number; booked: number }

/**
 * The account of one subscription in one process, with its estimate of the shared level. Every charge is decided synchronously: against the estimate,
 * from which own spending is deducted at once, and with at most one chunk of unbooked spending. Booking replaces the estimate by the true level.
 * While the shared server is unreachable, the account uses this process's share of rate and capacity.
 */
export class SharedAccount implements QuotaAccount {
  isOpen = true
  isLocal: boolean
  readonly subscriptionId: string
  /** Identifies this account among all that ever spend for the subscription, in any process. */
  readonly spenderId: string
  readonly #ledger: AccountLedger
  #terms: Terms
  /** Estimated levels in units, as of `#atMs`. */
  #levels: number[]
  #atMs: number
  readonly #tallies = new Map<string, Tally>()
  /** The tallies of the current limits, in their order. */
  #spending: Tally[]
  #month: number
  #used: number
  #monthly: Tally = { spent: 0, booked: 0 }
  #monthCeiling: number
  /** One over the number of processes while the server is unreachable, otherwise 1. */
  #share: number
  #settledAtMs = Number.NEGATIVE_INFINITY

  constructor(
    ledger: AccountLedger,
    given: {
      subscriptionId: string
      spenderId: string
      terms: Terms
      monotonicMs: number
      used: number
      localShare: number | undefined
    },
  ) {
    this.#ledger = ledger
    this.subscriptionId = given.subscriptionId
    this.spenderId = given.spenderId
    this.#terms = given.terms
    this.isLocal = given.localShare !== undefined
    this.#share = given.localShare ?? 1
    this.#levels = given.terms.buckets.map((bucket) => this.#capacity(bucket))
    this.#spending = this.#talliesOf(given.terms)
    this.#atMs = given.monotonicMs
    this.#month = ledger.calendar.month
    this.#used = given.used
    this.#monthCeiling = this.#ceiling()
  }

  get hasUnbooked(): boolean {
    return unbooked(this.#monthly) !== 0 || this.#spending.some((tally) => unbooked(tally) !== 0)
  }

  charge(terms: Terms, call: CallTerms, monotonicMs: number): Charge {
    this.#settle(terms, monotonicMs)
    const { draws, cost } = call
    let isShort = this.#used + cost > this.#monthCeiling
    let isAhead = unbooked(this.#monthly) + cost > terms.monthChunk
    for (const { bucket, amount } of draws) {
      if (amount > (this.#levels[bucket] as number)) isShort = true
      if (this.#unbooked(bucket) + amount > (terms.buckets[bucket] as BucketTerms).chunk) isAhead = true
    }
    if (isShort || (isAhead && !this.isLocal)) {
      if (isAhead || monotonicMs - this.#settledAtMs >= REBOOK_MS) this.#ledger.requestBooking(this)
      return this.#refuse(call, monotonicMs)
    }
    this.#spend(call, 1)
    if (this.#settledAtMs === Number.NEGATIVE_INFINITY || this.#isHalfAhead(call)) this.#ledger.requestBooking(this)
    return { ok: true, cost, ...this.#budget(monotonicMs) }
  }

  refund(terms: Terms, call: CallTerms, monotonicMs: number): void {
    this.#settle(this.#terms, monotonicMs)
    if (terms === this.#terms) this.#spend(call, -1)
  }

  view(terms: Terms, monotonicMs: number): QuotaView {
    this.#settle(terms, monotonicMs)
    if (monotonicMs - this.#settledAtMs >= REBOOK_MS) this.#ledger.requestBooking(this)
    const resetMs = this.#ledger.calendar.untilNextMonthMs(monotonicMs)
    return {
      ...this.#budget(monotonicMs),
      month: { limit: terms.unitsPerMonth, used: this.#used, resetMs },
      buckets: terms.buckets.map((bucket, at) => ({
        limit: bucket.limit,
        method: bucket.limit === 'methodPerSecond' ? bucket.key.slice(bucket.key.indexOf(':') + 1) : undefined,
        perSecond: bucket.perSecond,
        capacity: bucket.capacity,
        remaining: wholeUnits(this.#levels[at] as number),
        resetMs: this.#msUntil(at, this.#capacity(bucket)),
      })),
    }
  }

  /** The booking to send now. After a time on its local share, what the local bucket has refilled since is waived. */
  book(monotonicMs: number): SentBooking {
    this.#settle(this.#terms, monotonicMs)
    const { buckets } = this.#terms
    const waived = buckets.map((bucket, at) => {
      const missing = Math.max(0, this.#capacity(bucket) - (this.#levels[at] as number))
      return this.isLocal ? Math.max(0, this.#unbooked(at) - missing) : 0
    })
    return {
      waived,
      booking: {
        month: {
          ...this.#monthly,
          number: this.#month,
          usedKnown: Math.max(0, this.#used - unbooked(this.#monthly)),
        },
        buckets: buckets.map(({ key, perSecond, capacity }, at) => {
          const { spent, booked } = this.#spending[at] as Tally
          return { key, perSecond, capacity, spent: spent - (waived[at] as number), booked }
        }),
      },
    }
  }

  /** Applies the reply to a booking; units spent since it was sent stay unbooked. */
  applyBooked({ booking, waived }: SentBooking, response: Booked, monotonicMs: number): void {
    this.#settle(this.#terms, monotonicMs)
    this.isLocal = false
    this.#share = 1
    this.#settledAtMs = monotonicMs
    if (booking.month.number === this.#month) this.#monthly.booked = booking.month.spent
    // At the start of a month the clocks of server and process may differ; the local month is kept until they agree.
    if (response.month === this.#month) this.#used = Math.max(0, response.used + unbooked(this.#monthly))
    this.#monthCeiling = this.#ceiling()
    for (const [at, { key, spent }] of booking.buckets.entries()) {
      const tally = this.#tallies.get(key) as Tally
      tally.spent -= waived[at] as number
      tally.booked = spent
      const bucket = this.#spending.indexOf(tally)
      if (bucket !== -1) this.#levels[bucket] = (response.levels[at] as number) - unbooked(tally)
    }
  }

  /** The server is unreachable: continues with this process's share of the estimated level. */
  goLocal(share: number, monotonicMs: number): void {
    this.#settle(this.#terms, monotonicMs)
    if (!this.isLocal) this.#levels = this.#levels.map((level) => (level > 0 ? level * share : level))
    this.isLocal = true
    this.#share = share
    this.#monthCeiling = this.#ceiling()
  }

  /** Whether the account carries no information: everything is booked and all buckets are full. */
  isIdle(monotonicMs: number): boolean {
    this.#settle(this.#terms, monotonicMs)
    if (this.hasUnbooked) return false
    return this.#terms.buckets.every((bucket, at) => (this.#levels[at] as number) >= this.#capacity(bucket))
  }

  /** Closes the account and returns the units of the month. */
  close(): number {
    this.isOpen = false
    return this.#used
  }

  #spend({ draws, cost }: CallTerms, sign: 1 | -1): void {
    for (const { bucket, amount } of draws) {
      this.#levels[bucket] = (this.#levels[bucket] as number) - sign * amount
      ;(this.#spending[bucket] as Tally).spent += sign * amount
    }
    this.#used = Math.max(0, this.#used + sign * cost)
    this.#monthly.spent += sign * cost
    this.#ledger.markUnbooked(this)
  }

  #isHalfAhead({ draws }: CallTerms): boolean {
    if (unbooked(this.#monthly) * 2 >= this.#terms.monthChunk) return true
    return draws.some(({ bucket }) => this.#unbooked(bucket) * 2 >= (this.#terms.buckets[bucket] as BucketTerms).chunk)
  }

  /** Updates month, limits and estimated levels. */
  #settle(terms: Terms, monotonicMs: number): void {
    const { calendar } = this.#ledger
    calendar.update(monotonicMs)
    if (this.#month !== calendar.month) {
      // Unbooked units of the old month are dropped.
      if (calendar.month > this.#month) {
        this.#used = 0
        this.#monthly = { spent: 0, booked: 0 }
      }
      this.#month = calendar.month
      this.#monthCeiling = this.#ceiling()
    }
    const elapsedMs = monotonicMs - this.#atMs
    if (elapsedMs > 0) {
      this.#atMs = monotonicMs
      for (const [at, bucket] of this.#terms.buckets.entries()) {
        const level = (this.#levels[at] as number) + (elapsedMs * bucket.perSecond * this.#share) / 1000
        this.#levels[at] = Math.min(this.#capacity(bucket), level)
      }
    }
    if (this.#terms !== terms) this.#adopt(terms)
  }

  /** Applies new limits as in `quota.ts`: a full bucket stays full, other levels are kept up to the new capacity. Tallies are kept. */
  #adopt(terms: Terms): void {
    const before = this.#terms.buckets
    const indexes = terms.buckets.map(({ key }) => before.findIndex((bucket) => bucket.key === key))
    this.#levels = terms.buckets.map((bucket, at) => {
      const old = before[indexes[at] ?? -1]
      const level = this.#levels[indexes[at] ?? -1] ?? 0
      const capacity = this.#capacity(bucket)
      return old === undefined || level >= this.#capacity(old) ? capacity : Math.min(capacity, level)
    })
    this.#spending = this.#talliesOf(terms)
    this.#terms = terms
    this.#monthCeiling = this.#ceiling()
  }

  #talliesOf(terms: Terms): Tally[] {
    return terms.buckets.map(({ key }) => {
      const tally = this.#tallies.get(key) ?? { spent: 0, booked: 0 }
      this.#tallies.set(key, tally)
      return tally
    })
  }

  #unbooked(bucket: number): number {
    return unbooked(this.#spending[bucket] as Tally)
  }

  #capacity({ capacity, largestDraw }: BucketTerms): number {
    return this.isLocal ? Math.min(capacity, Math.max(capacity * this.#share, largestDraw)) : capacity
  }

  #ceiling(): number {
    const { unitsPerMonth } = this.#terms
    if (unitsPerMonth === null) return Number.POSITIVE_INFINITY
    return this.#used + Math.max(0, unitsPerMonth - this.#used) * this.#share
  }

  #refuse({ draws, cost }: CallTerms, monotonicMs: number): OverLimit {
    const { buckets, unitsPerMonth } = this.#terms
    let limitName: LimitName = 'unitsPerSecond'
    let limitSize = 0
    let retryAfterMs = 0
    for (const { bucket, amount } of draws) {
      const needMs = Math.max(REBOOK_MS, this.#msUntil(bucket, amount))
      if (needMs <= retryAfterMs) continue
      const { limit, perSecond } = buckets[bucket] as BucketTerms
      limitName = limit
      limitSize = perSecond
      retryAfterMs = needMs
    }
    if (unitsPerMonth !== null && (draws.length === 0 || this.#used + cost > this.#monthCeiling)) {
      const needMs =
        cost > unitsPerMonth ? Number.POSITIVE_INFINITY : this.#ledger.calendar.untilNextMonthMs(monotonicMs)
      if (needMs >= retryAfterMs) {
        limitName = 'unitsPerMonth'
        limitSize = unitsPerMonth
        retryAfterMs = this.#used + cost > this.#monthCeiling ? needMs : REBOOK_MS
      }
    }
    return { ok: false, reason: 'over-limit', limitName, limitSize, cost, retryAfterMs, ...this.#budget(monotonicMs) }
  }

  #msUntil(at: number, units: number): number {
    const bucket = this.#terms.buckets[at] as BucketTerms
    const missing = units - (this.#levels[at] as number)
    if (missing <= 0) return 0
    if (units > this.#capacity(bucket) || bucket.perSecond === 0) return Number.POSITIVE_INFINITY
    return Math.ceil((missing * 1000) / (bucket.perSecond * this.#share))
  }

  #budget(monotonicMs: number): Budget {
    const { unitsBucket, unitsPerMonth, buckets } = this.#terms
    const bucket = buckets[unitsBucket]
    const level = bucket === undefined ? Number.POSITIVE_INFINITY : (this.#levels[unitsBucket] as number)
    const monthLeft = this.#monthCeiling - this.#used
    if (unitsPerMonth !== null && monthLeft < level) {
      const resetMs = this.#ledger.calendar.untilNextMonthMs(monotonicMs)
      return { limit: unitsPerMonth, remaining: wholeUnits(monthLeft), resetMs }
    }
    if (bucket === undefined) return { limit: null, remaining: null, resetMs: 0 }
    const resetMs = this.#msUntil(unitsBucket, this.#capacity(bucket))
    return { limit: bucket.capacity, remaining: wholeUnits(level), resetMs }
  }
}

function unbooked({ spent, booked }: Tally): number {
  return spent - booked
}
