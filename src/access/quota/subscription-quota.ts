import type { Writable } from '../../core/records.ts'
import type { BucketTerms, CallTerms, Terms } from '../terms.ts'
import {
  type Charge,
  type OverLimit,
  type QuotaAccount,
  type QuotaView,
  type RemainingQuota,
  wholeUnits,
} from './charge.ts'
import type { QuotaContext } from './context.ts'
import type { QuotaMemory } from './memory.ts'
import { ACCOUNT, BUCKET, FIELD, FLAG, MARK } from './memory-layout.ts'
import { capacityOf, refill, refillAll, rollMonth, setCeiling, unbooked } from './rules.ts'
import { longestWait, msUntil, REBOOK_MS } from './waits.ts'

type Draw = CallTerms['draws'][number]
const NO_DRAWS: readonly Draw[] = []

/**
 * The quota account of one subscription, as one thread sees it. Every charge is decided synchronously, under the account's lock. With a shared ledger the
 * levels are this process's estimate, and at most one chunk may be spent ahead of its booking; see `shared-ledger.ts`.
 */
export class SubscriptionQuota implements QuotaAccount {
  readonly #context: QuotaContext
  readonly #memory: QuotaMemory
  readonly #id: string
  #cell = 0
  #generation = 0
  #terms: Terms
  /** The cell of each bucket of the terms; 0 where it is not known yet. A bucket without a cell is full. */
  #bucketCells: number[]

  constructor(context: QuotaContext, id: string, terms: Terms, monotonicMs: number) {
    this.#context = context
    this.#memory = context.memory
    this.#id = id
    this.#terms = terms
    this.#bucketCells = noCells(terms)
    this.#attach(Math.floor(monotonicMs))
  }

  charge(terms: Terms, call: CallTerms, monotonicMs: number): Charge {
    const { draws, cost } = call
    const nowMs = Math.floor(monotonicMs)
    this.#lockCurrent(terms, draws, nowMs)
    const memory = this.#memory
    const cell = this.#cell
    const { isShared } = this.#context
    const used = memory.float(cell, ACCOUNT.used)
    let isShort = used + cost > memory.float(cell, ACCOUNT.monthCeiling)
    for (const { bucket, amount } of draws) {
      const bucketCell = this.#bucketCells[bucket] as number
      if (amount * memory.float(bucketCell, BUCKET.partsPerUnit) > memory.float(bucketCell, BUCKET.level))
        isShort = true
    }
    const isAhead = isShared && this.#wouldExceedChunk(call)
    if (isShort || isAhead) return this.#refuse(call, nowMs, isAhead)
    for (const { bucket, amount } of draws) this.#draw(bucket, amount)
    memory.setFloat(cell, ACCOUNT.used, used + cost)
    const charged = { ok: true as const, cost, limit: null, remaining: null, resetMs: 0 }
    if (!isShared) {
      this.#unlockWithQuota(charged, nowMs)
      return charged
    }
    memory.setFloat(cell, ACCOUNT.spent, memory.float(cell, ACCOUNT.spent) + cost)
    const isFirst = memory.float(cell, ACCOUNT.bookedAtMs) === Number.NEGATIVE_INFINITY
    const isDue = isFirst || this.#hasSpentHalfChunk(call)
    this.#unlockWithQuota(charged, nowMs)
    memory.mark(MARK.unbooked, cell)
    if (isDue) this.#requestBooking()
    return charged
  }

  refund(terms: Terms, { draws, cost }: CallTerms, monotonicMs: number): void {
    const nowMs = Math.floor(monotonicMs)
    const memory = this.#memory
    // After a change of limits the bucket may be a different one, so only the units of the month are refunded.
    const refunded = terms === this.#terms ? draws : NO_DRAWS
    this.#lockCurrent(this.#terms, refunded, nowMs)
    const cell = this.#cell
    memory.setFloat(cell, ACCOUNT.used, Math.max(0, memory.float(cell, ACCOUNT.used) - cost))
    memory.setFloat(cell, ACCOUNT.spent, memory.float(cell, ACCOUNT.spent) - cost)
    for (const { bucket, amount } of refunded) {
      this.#draw(bucket, -amount)
      const bucketCell = this.#bucketCells[bucket] as number
      const capacity = capacityOf(memory, cell, bucketCell)
      if (memory.float(bucketCell, BUCKET.level) > capacity) memory.setFloat(bucketCell, BUCKET.level, capacity)
    }
    memory.unlock(cell)
    if (this.#context.isShared) memory.mark(MARK.unbooked, cell)
  }

  view(terms: Terms, monotonicMs: number): QuotaView {
    const nowMs = Math.floor(monotonicMs)
    const memory = this.#memory
    const { isShared } = this.#context
    // A bucket that was never drawn from is full here, but not necessarily in the shared ledger: it gets a cell, so that bookings include it.
    const shown = isShared ? terms.buckets.map((_, bucket) => ({ bucket, amount: 0 })) : NO_DRAWS
    this.#lockCurrent(terms, shown, nowMs)
    const cell = this.#cell
    refillAll(memory, cell, nowMs)
    const used = memory.float(cell, ACCOUNT.used)
    const isOld = nowMs - memory.float(cell, ACCOUNT.bookedAtMs) >= REBOOK_MS
    const buckets = terms.buckets.map(({ limit, key, perSecond, capacity }, at) => {
      this.#bucketCells[at] ||= memory.findBucket(cell, key)
      const bucketCell = this.#bucketCells[at] as number
      return {
        limit,
        method: limit === 'methodPerSecond' ? key.slice(key.indexOf(':') + 1) : undefined,
        perSecond,
        capacity,
        remaining: wholeUnits(
          bucketCell === 0
            ? capacity
            : memory.float(bucketCell, BUCKET.level) / memory.float(bucketCell, BUCKET.partsPerUnit),
        ),
        resetMs: bucketCell === 0 ? 0 : msUntil(memory, cell, bucketCell, capacityOf(memory, cell, bucketCell)),
      }
    })
    const budget = { limit: null, remaining: null, resetMs: 0 }
    this.#unlockWithQuota(budget, nowMs)
    if (isOld && isShared) this.#requestBooking()
    const resetMs = this.#context.calendar.untilNextMonthMs(monotonicMs)
    return { ...budget, month: { limit: terms.unitsPerMonth, used, resetMs }, buckets }
  }

  /** Locks the account with these terms, a cell for each draw, and the month and the drawn buckets as of now. */
  #lockCurrent(terms: Terms, draws: readonly Draw[], nowMs: number): void {
    const memory = this.#memory
    const { calendar } = this.#context
    calendar.update(nowMs)
    if (this.#terms !== terms) this.#adopt(terms, nowMs)
    memory.lock(this.#cell)
    while (!this.#isCurrent(draws)) {
      memory.unlock(this.#cell)
      if (memory.int(this.#cell, FIELD.generation) !== this.#generation) this.#attach(nowMs)
      else this.#addBuckets(draws, nowMs)
      memory.lock(this.#cell)
    }
    if (calendar.month !== memory.float(this.#cell, ACCOUNT.month)) rollMonth(memory, this.#cell, calendar)
    for (const { bucket } of draws) refill(memory, this.#cell, this.#bucketCells[bucket] as number, nowMs)
  }

  #isCurrent(draws: readonly Draw[]): boolean {
    if (this.#memory.int(this.#cell, FIELD.generation) !== this.#generation) return false
    for (const { bucket } of draws) if (this.#bucketCells[bucket] === 0) return false
    return true
  }

  /** Opens the account, or joins it where another thread did. */
  #attach(nowMs: number): void {
    const memory = this.#memory
    this.#cell = memory.attach(this.#id, true)
    memory.lock(this.#cell)
    this.#generation = memory.int(this.#cell, FIELD.generation)
    this.#bucketCells = noCells(this.#terms)
    this.#setLimits(nowMs)
    memory.unlock(this.#cell)
  }

  #adopt(terms: Terms, nowMs: number): void {
    const memory = this.#memory
    this.#terms = terms
    memory.lock(this.#cell)
    this.#bucketCells = noCells(terms)
    if (memory.int(this.#cell, FIELD.generation) === this.#generation) this.#setLimits(nowMs)
    memory.unlock(this.#cell)
  }

  /**
   * Applies the limits, unless another thread knows newer ones: a full bucket stays full; any other keeps its level, up to the new capacity. A bucket
   * that has no limit any more fills, in case it gets one again.
   */
  #setLimits(nowMs: number): void {
    const memory = this.#memory
    const cell = this.#cell
    rollMonth(memory, cell, this.#context.calendar)
    const limitsVersion = this.#context.limitsVersion()
    if (limitsVersion < memory.float(cell, ACCOUNT.limitsVersion)) return
    memory.setFloat(cell, ACCOUNT.limitsVersion, limitsVersion)
    memory.setFloat(cell, ACCOUNT.unitsPerMonth, this.#terms.unitsPerMonth ?? Number.POSITIVE_INFINITY)
    setCeiling(memory, cell)
    refillAll(memory, cell, nowMs)
    for (const bucketCell of memory.bucketsOf(cell)) {
      const at = this.#terms.buckets.findIndex(({ key }) => memory.isNamed(bucketCell, key))
      const terms = this.#terms.buckets[at]
      if (terms === undefined) memory.setFloat(bucketCell, BUCKET.level, capacityOf(memory, cell, bucketCell))
      else {
        this.#bucketCells[at] = bucketCell
        this.#changeBucket(bucketCell, terms)
      }
    }
  }

  #changeBucket(bucketCell: number, terms: BucketTerms): void {
    const memory = this.#memory
    const full = capacityOf(memory, this.#cell, bucketCell)
    const level = memory.float(bucketCell, BUCKET.level)
    const parts = terms.partsPerUnit / memory.float(bucketCell, BUCKET.partsPerUnit)
    this.#setBucket(bucketCell, terms)
    memory.setFloat(bucketCell, BUCKET.spent, memory.float(bucketCell, BUCKET.spent) * parts)
    memory.setFloat(bucketCell, BUCKET.booked, memory.float(bucketCell, BUCKET.booked) * parts)
    const capacity = capacityOf(memory, this.#cell, bucketCell)
    memory.setFloat(bucketCell, BUCKET.level, level >= full ? capacity : Math.min(capacity, Math.floor(level * parts)))
  }

  /** Finds or adds a bucket for each draw that has none. The account may be closed meanwhile, so the caller checks again. */
  #addBuckets(draws: readonly Draw[], nowMs: number): void {
    const memory = this.#memory
    const spare = memory.reserveCells(draws.length)
    memory.lock(this.#cell)
    if (memory.int(this.#cell, FIELD.generation) === this.#generation) {
      for (const { bucket } of draws) {
        const terms = this.#terms.buckets[bucket] as BucketTerms
        const known = memory.findBucket(this.#cell, terms.key)
        this.#bucketCells[bucket] = known === 0 ? this.#addBucket(spare.pop() as number, terms, nowMs) : known
        // A thread that does not know the newest limits yet may have added it.
        if (known !== 0 && memory.int(known, FIELD.limitsVersion) < this.#context.limitsVersion()) {
          refill(memory, this.#cell, known, nowMs)
          this.#changeBucket(known, terms)
        }
      }
    }
    memory.unlock(this.#cell)
    memory.freeCells(spare)
  }

  #addBucket(bucketCell: number, terms: BucketTerms, nowMs: number): number {
    const memory = this.#memory
    memory.addBucket(this.#cell, bucketCell, terms.key)
    this.#setBucket(bucketCell, terms)
    memory.setFloat(bucketCell, BUCKET.atMs, nowMs)
    memory.setFloat(bucketCell, BUCKET.level, capacityOf(memory, this.#cell, bucketCell))
    memory.setFloat(bucketCell, BUCKET.spent, 0)
    memory.setFloat(bucketCell, BUCKET.booked, 0)
    return bucketCell
  }

  #setBucket(bucketCell: number, terms: BucketTerms): void {
    const memory = this.#memory
    memory.setInt(bucketCell, FIELD.limitsVersion, this.#context.limitsVersion())
    memory.setFloat(bucketCell, BUCKET.capacity, terms.capacityParts)
    memory.setFloat(bucketCell, BUCKET.partsPerUnit, terms.partsPerUnit)
    memory.setFloat(bucketCell, BUCKET.partsPerMs, terms.partsPerMs)
    memory.setFloat(bucketCell, BUCKET.largestDraw, terms.largestDraw * terms.partsPerUnit)
    memory.setFloat(bucketCell, BUCKET.perSecond, terms.perSecond)
    memory.setFloat(bucketCell, BUCKET.capacityUnits, terms.capacity)
  }

  #draw(bucket: number, amount: number): void {
    const memory = this.#memory
    const bucketCell = this.#bucketCells[bucket] as number
    const parts = amount * memory.float(bucketCell, BUCKET.partsPerUnit)
    memory.setFloat(bucketCell, BUCKET.level, memory.float(bucketCell, BUCKET.level) - parts)
    if (!this.#context.isShared) return
    memory.setFloat(bucketCell, BUCKET.spent, memory.float(bucketCell, BUCKET.spent) + parts)
  }

  /** Whether this process would have spent more than a chunk ahead of its booking with this call. */
  #wouldExceedChunk({ draws, cost }: CallTerms): boolean {
    if (this.#isLocal()) return false
    if (this.#unbookedMonth() + cost > this.#terms.monthChunk) return true
    for (const { bucket, amount } of draws) {
      const { chunk } = this.#terms.buckets[bucket] as BucketTerms
      if (this.#unbookedUnits(bucket) + amount > chunk) return true
    }
    return false
  }

  /** Whether half a chunk is spent of anything that the call draws from: a booking now is back before the other half is spent. */
  #hasSpentHalfChunk({ draws }: CallTerms): boolean {
    if (this.#isLocal()) return false
    if (this.#unbookedMonth() >= this.#terms.monthChunk / 2) return true
    for (const { bucket } of draws) {
      const { chunk } = this.#terms.buckets[bucket] as BucketTerms
      if (this.#unbookedUnits(bucket) >= chunk / 2) return true
    }
    return false
  }

  #isLocal(): boolean {
    return (this.#memory.int(this.#cell, FIELD.flags) & FLAG.local) !== 0
  }

  #unbookedMonth(): number {
    return this.#memory.float(this.#cell, ACCOUNT.spent) - this.#memory.float(this.#cell, ACCOUNT.booked)
  }

  #unbookedUnits(bucket: number): number {
    const bucketCell = this.#bucketCells[bucket] as number
    return unbooked(this.#memory, bucketCell) / this.#memory.float(bucketCell, BUCKET.partsPerUnit)
  }

  #requestBooking(): void {
    this.#memory.mark(MARK.requested, this.#cell)
    this.#context.requestBookings()
  }

  /** Names the limit with the longest wait, and unlocks the account. */
  #refuse(call: CallTerms, nowMs: number, isAhead: boolean): OverLimit {
    const memory = this.#memory
    const cell = this.#cell
    const { isShared } = this.#context
    const wait = longestWait(this.#context, cell, this.#bucketCells, this.#terms, call, nowMs)
    const isOld = nowMs - memory.float(cell, ACCOUNT.bookedAtMs) >= REBOOK_MS
    const outcome = {
      ok: false as const,
      reason: 'over-limit' as const,
      limitName: wait.limitName,
      limitSize: wait.limitSize,
      cost: call.cost,
      retryAfterMs: wait.retryAfterMs,
      limit: null,
      remaining: null,
      resetMs: 0,
    }
    this.#unlockWithQuota(outcome, nowMs)
    if (isShared && (isAhead || isOld)) this.#requestBooking()
    return outcome
  }

  /** Fills in the tighter of units bucket and month, and unlocks the account. In place, because every call has one. */
  #unlockWithQuota(response: Writable<RemainingQuota>, nowMs: number): void {
    const memory = this.#memory
    const cell = this.#cell
    const { unitsBucket, buckets } = this.#terms
    const bucket = buckets[unitsBucket]
    let left = Number.POSITIVE_INFINITY
    let resetMs = 0
    if (bucket !== undefined) {
      this.#bucketCells[unitsBucket] ||= memory.findBucket(cell, bucket.key)
      const bucketCell = this.#bucketCells[unitsBucket] as number
      if (bucketCell === 0) left = bucket.capacity
      else {
        refill(memory, cell, bucketCell, nowMs)
        left = memory.float(bucketCell, BUCKET.level) / memory.float(bucketCell, BUCKET.partsPerUnit)
        resetMs = msUntil(memory, cell, bucketCell, capacityOf(memory, cell, bucketCell))
      }
    }
    const unitsPerMonth = memory.float(cell, ACCOUNT.unitsPerMonth)
    const monthLeft = memory.float(cell, ACCOUNT.monthCeiling) - memory.float(cell, ACCOUNT.used)
    memory.unlock(cell)
    if (monthLeft < left) {
      response.limit = unitsPerMonth
      response.remaining = wholeUnits(monthLeft)
      response.resetMs = this.#context.calendar.untilNextMonthMs(nowMs)
    } else if (bucket !== undefined) {
      response.limit = bucket.capacity
      response.remaining = wholeUnits(left)
      response.resetMs = resetMs
    }
  }
}

function noCells({ buckets }: Terms): number[] {
  return new Array<number>(buckets.length).fill(0)
}
