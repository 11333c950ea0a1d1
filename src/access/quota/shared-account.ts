import type { LimitName } from '../../contract/limits.ts'
import type { BucketTerms, CallTerms, Terms } from '../terms.ts'
import type { Calendar } from './calendar.ts'
import { type Budget, type Charge, type OverLimit, type QuotaAccount, type QuotaView, wholeUnits } from './charge.ts'
import type { Booked, Booking } from './redis-script.ts'

/** Books that were settled this recently are not settled again just to look, and a call that waits for a booking may come again this soon. */
const LOOK_AGAIN_MS = 50

/** What an account asks of its ledger. */
export type LedgerSide = {
  readonly calendar: Calendar
  /** Something waits to be booked. */
  noteUnbooked(account: SharedAccount): void
  /** The books should be settled as soon as possible. */
  wantBooking(account: SharedAccount): void
}

/** A booking on its way, and what is forgiven with it once it is answered, bucket by bucket. */
export type SentBooking = { readonly booking: Booking; readonly forgiven: readonly number[] }

/** Both only grow, but for refunds and what is forgiven; the books take the difference. Kept while a limit is absent: it may come back. */
type Tally = { spent: number; booked: number }

/**
 * One subscription's books in one process, as that process believes them to be. Every charge is decided here and now: against the believed level,
 * from which own spending is taken at once, and with at most one chunk of spending that the shared books do not know yet. Booking brings belief
 * and truth together. While the shared server is away the same books run on this process's share of rate and size.
 */
export class SharedAccount implements QuotaAccount {
  isOpen = true
  isLocal: boolean
  readonly subscriptionId: string
  /** Names these books among all that ever spend for the subscription, in any process. */
  readonly spenderId: string
  readonly #ledger: LedgerSide
  #terms: Terms
  /** Believed levels in units, and when they were right. */
  #levels: number[]
  #atMs: number
  readonly #tallies = new Map<string, Tally>()
  /** Those of the present limits, in their order. */
  #spending: Tally[]
  #month: number
  #used: number
  #monthly: Tally = { spent: 0, booked: 0 }
  #monthCeiling: number
  /** One over the number of processes while the server is away, else 1. */
  #share: number
  #settledAtMs = Number.NEGATIVE_INFINITY

  constructor(
    ledger: LedgerSide,
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
      if (isAhead || monotonicMs - this.#settledAtMs >= LOOK_AGAIN_MS) this.#ledger.wantBooking(this)
      return this.#refuse(call, monotonicMs)
    }
    this.#spend(call, 1)
    if (this.#settledAtMs === Number.NEGATIVE_INFINITY || this.#isHalfAhead(call)) this.#ledger.wantBooking(this)
    return { ok: true, cost, ...this.#budget(monotonicMs) }
  }

  refund(terms: Terms, call: CallTerms, monotonicMs: number): void {
    this.#settle(this.#terms, monotonicMs)
    if (terms === this.#terms) this.#spend(call, -1)
  }

  view(terms: Terms, monotonicMs: number): QuotaView {
    this.#settle(terms, monotonicMs)
    if (monotonicMs - this.#settledAtMs >= LOOK_AGAIN_MS) this.#ledger.wantBooking(this)
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

  /** What to book now. A process on its own share may have spent for hours; what its own bucket has earned back since is forgiven. */
  book(monotonicMs: number): SentBooking {
    this.#settle(this.#terms, monotonicMs)
    const { buckets } = this.#terms
    const forgiven = buckets.map((bucket, at) => {
      const missing = Math.max(0, this.#capacity(bucket) - (this.#levels[at] as number))
      return this.isLocal ? Math.max(0, this.#unbooked(at) - missing) : 0
    })
    return {
      forgiven,
      booking: {
        month: {
          ...this.#monthly,
          number: this.#month,
          usedKnown: Math.max(0, this.#used - unbooked(this.#monthly)),
        },
        buckets: buckets.map(({ key, perSecond, capacity }, at) => {
          const { spent, booked } = this.#spending[at] as Tally
          return { key, perSecond, capacity, spent: spent - (forgiven[at] as number), booked }
        }),
      },
    }
  }

  /** Takes over what the shared books answered; what was spent since the booking was sent stays unbooked. */
  learn({ booking, forgiven }: SentBooking, response: Booked, monotonicMs: number): void {
    this.#settle(this.#terms, monotonicMs)
    this.isLocal = false
    this.#share = 1
    this.#settledAtMs = monotonicMs
    if (booking.month.number === this.#month) this.#monthly.booked = booking.month.spent
    // Around the turn of a month the server's clock and ours may name different ones; then ours goes on until they agree.
    if (response.month === this.#month) this.#used = Math.max(0, response.used + unbooked(this.#monthly))
    this.#monthCeiling = this.#ceiling()
    for (const [at, { key, spent }] of booking.buckets.entries()) {
      const tally = this.#tallies.get(key) as Tally
      tally.spent -= forgiven[at] as number
      tally.booked = spent
      const bucket = this.#spending.indexOf(tally)
      if (bucket !== -1) this.#levels[bucket] = (response.levels[at] as number) - unbooked(tally)
    }
  }

  /** The server is away: go on with this process's share of what was believed to be left. */
  goLocal(share: number, monotonicMs: number): void {
    this.#settle(this.#terms, monotonicMs)
    if (!this.isLocal) this.#levels = this.#levels.map((level) => (level > 0 ? level * share : level))
    this.isLocal = true
    this.#share = share
    this.#monthCeiling = this.#ceiling()
  }

  /** Whether these books say nothing that would not be believed without them. */
  isIdle(monotonicMs: number): boolean {
    this.#settle(this.#terms, monotonicMs)
    if (this.hasUnbooked) return false
    return this.#terms.buckets.every((bucket, at) => (this.#levels[at] as number) >= this.#capacity(bucket))
  }

  /** Ends these books and gives what the month has cost so far. */
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
    this.#ledger.noteUnbooked(this)
  }

  #isHalfAhead({ draws }: CallTerms): boolean {
    if (unbooked(this.#monthly) * 2 >= this.#terms.monthChunk) return true
    return draws.some(({ bucket }) => this.#unbooked(bucket) * 2 >= (this.#terms.buckets[bucket] as BucketTerms).chunk)
  }

  /** Brings month, limits and believed levels up to date. */
  #settle(terms: Terms, monotonicMs: number): void {
    const { calendar } = this.#ledger
    calendar.look(monotonicMs)
    if (this.#month !== calendar.month) {
      // What was not booked in the old month stays there.
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

  /** As in the ledger of one process: what is full stays full, other levels are kept and cut to size. What waits to be booked goes along. */
  #adopt(terms: Terms): void {
    const before = this.#terms.buckets
    const positions = terms.buckets.map(({ key }) => before.findIndex((bucket) => bucket.key === key))
    this.#levels = terms.buckets.map((bucket, at) => {
      const old = before[positions[at] ?? -1]
      const level = this.#levels[positions[at] ?? -1] ?? 0
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
      const needMs = Math.max(LOOK_AGAIN_MS, this.#msUntil(bucket, amount))
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
        retryAfterMs = this.#used + cost > this.#monthCeiling ? needMs : LOOK_AGAIN_MS
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
