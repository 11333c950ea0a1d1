import assert from 'node:assert/strict'

export type TokenBucketLimits = { capacity: number; perSecond: number }

/** Levels are integers of millionths: additions are exact, so a bucket never drifts. */
const PARTS = 1_000_000
/** Above this a level would exceed the range of exact integers. */
const CAPACITY_MAX = 9_000_000_000

/**
 * A budget that refills over time. Callers pass monotonic milliseconds; the bucket has no timer and refills on access. Time
 * that goes back is ignored until it has caught up.
 */
export class TokenBucket {
  readonly #capacityParts: number
  readonly #partsPerMs: number
  #level: number
  #lastMs: number

  constructor(limits: TokenBucketLimits, monotonicMs: number) {
    assert(limits.capacity >= 0 && limits.capacity <= CAPACITY_MAX, 'capacity is out of range')
    assert(limits.perSecond >= 0 && limits.perSecond <= CAPACITY_MAX, 'rate is out of range')
    this.#capacityParts = Math.floor(limits.capacity * PARTS)
    this.#partsPerMs = Math.round((limits.perSecond * PARTS) / 1000)
    this.#level = this.#capacityParts
    this.#lastMs = Math.floor(monotonicMs)
  }

  /** The state, for those that keep it elsewhere: the level in parts of a token, and when it was last refilled. */
  get parts(): number {
    return this.#level
  }

  get atMs(): number {
    return this.#lastMs
  }

  /** Replaces the state by that of another bucket with the same limits. */
  load(parts: number, atMs: number): void {
    this.#level = parts
    this.#lastMs = Math.floor(atMs)
  }

  /** Takes `cost` and returns true, or takes nothing and returns false. */
  take(cost: number, monotonicMs: number): boolean {
    this.#refill(monotonicMs)
    const parts = Math.ceil(cost * PARTS)
    if (parts > this.#level) return false
    this.#level -= parts
    return true
  }

  /** Takes `cost` in any case; the level may fall below zero and refills from there. */
  force(cost: number, monotonicMs: number): void {
    this.#refill(monotonicMs)
    this.#level -= Math.ceil(cost * PARTS)
  }

  level(monotonicMs: number): number {
    this.#refill(monotonicMs)
    return this.#level / PARTS
  }

  /** Milliseconds until `cost` can be taken: 0 for now, Infinity for never. */
  waitMs(cost: number, monotonicMs: number): number {
    this.#refill(monotonicMs)
    return this.#msUntil(Math.ceil(cost * PARTS))
  }

  /** Milliseconds until the bucket is full. */
  fullInMs(monotonicMs: number): number {
    this.#refill(monotonicMs)
    return this.#msUntil(this.#capacityParts)
  }

  #refill(monotonicMs: number): void {
    const nowMs = Math.floor(monotonicMs)
    const elapsedMs = nowMs - this.#lastMs
    if (elapsedMs <= 0) return
    this.#lastMs = nowMs
    const missing = this.#capacityParts - this.#level
    // Compared before multiplying: after a long time the product would exceed the exact range.
    if (this.#partsPerMs > 0 && elapsedMs >= missing / this.#partsPerMs) this.#level = this.#capacityParts
    else this.#level += elapsedMs * this.#partsPerMs
  }

  #msUntil(parts: number): number {
    if (parts <= this.#level) return 0
    if (parts > this.#capacityParts || this.#partsPerMs === 0) return Number.POSITIVE_INFINITY
    return Math.ceil((parts - this.#level) / this.#partsPerMs)
  }
}
