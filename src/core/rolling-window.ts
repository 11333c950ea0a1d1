import assert from 'node:assert/strict'

export type RollingWindowOptions = {
  windowMs: number
  /** The resolution: an event leaves the window at most `windowMs / buckets` late. */
  buckets?: number
}

/** The sum of the amounts added during the last `windowMs`, in constant memory. */
class RollingWindow {
  readonly #bucketMs: number
  readonly #sums: Float64Array
  #newestBucket: number | undefined
  #sum = 0

  constructor({ windowMs, buckets = 10 }: RollingWindowOptions) {
    assert(windowMs > 0 && Number.isInteger(buckets) && buckets > 0, 'a window has a length and at least one bucket')
    this.#bucketMs = windowMs / buckets
    // One more than `buckets`: the newest bucket is partly in the future, the oldest partly in the past.
    this.#sums = new Float64Array(buckets + 1)
  }

  add(amount: number, monotonicMs: number): void {
    this.#moveTo(monotonicMs)
    const at = this.#at(this.#newestBucket as number)
    this.#sums[at] = (this.#sums[at] as number) + amount
    this.#sum += amount
  }

  sum(monotonicMs: number): number {
    this.#moveTo(monotonicMs)
    return this.#sum
  }

  #moveTo(monotonicMs: number): void {
    const bucket = Math.floor(monotonicMs / this.#bucketMs)
    if (this.#newestBucket === undefined) this.#newestBucket = bucket
    const steps = Math.min(bucket - this.#newestBucket, this.#sums.length)
    if (steps <= 0) return
    for (let step = 0; step < steps; step++) this.#sums[this.#at(bucket - step)] = 0
    this.#newestBucket = bucket
    // Recomputed whenever buckets leave, so that rounding errors do not accumulate.
    this.#sum = this.#sums.reduce((total, value) => total + value, 0)
  }

  #at(bucket: number): number {
    const length = this.#sums.length
    return ((bucket % length) + length) % length
  }
}

export function createRollingWindow(options: RollingWindowOptions): RollingWindow {
  return new RollingWindow(options)
}
