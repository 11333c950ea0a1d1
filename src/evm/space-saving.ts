import assert from 'node:assert/strict'
import { compareKeys } from './key-order.ts'
import { KeyTable, NOT_FOUND } from './key-table.ts'

const NONE = -1

export type Counted = { entry: number; count: number; error: number }

/**
 * Space-Saving (Metwally, Agrawal, El Abbadi 2005): the most frequent keys of a stream, with m counters. A new key without a free
 * counter takes over the one with the smallest count and goes on from there, remembering that count as its possible error. So for
 * every key kept: true count ≤ count ≤ true count + error, error ≤ smallest count ≤ N / m; and every key that truly came more than
 * N / m times is kept. Counters of equal count share a bucket, so that each step takes constant time; of equal minima the one that
 * reached that count first goes.
 */
export class SpaceSaving {
  /** Keys seen, repetitions included: the N of the bounds. */
  seen = 0
  readonly table: KeyTable
  readonly #counters: number
  readonly #errors: Float64Array
  readonly #bucketOf: Int32Array
  readonly #nextInBucket: Int32Array
  readonly #previousInBucket: Int32Array
  readonly #bucketCount: Float64Array
  readonly #bucketHead: Int32Array
  readonly #bucketTail: Int32Array
  readonly #higherBucket: Int32Array
  readonly #lowerBucket: Int32Array
  readonly #freeBuckets: Int32Array
  #freeBucketsLeft: number
  #isExact = true
  #lowest = NONE
  #highest = NONE

  constructor({ counters, words }: { counters: number; words: number }) {
    assert(counters > 0, 'there is something to count with')
    this.table = new KeyTable({ words, entriesMax: counters, entries: counters })
    this.#counters = counters
    this.#errors = new Float64Array(counters)
    this.#bucketOf = new Int32Array(counters)
    this.#nextInBucket = new Int32Array(counters)
    this.#previousInBucket = new Int32Array(counters)
    // One more than there are counters: a counter gets its new bucket before it leaves the old one.
    const buckets = counters + 1
    this.#bucketCount = new Float64Array(buckets)
    this.#bucketHead = new Int32Array(buckets)
    this.#bucketTail = new Int32Array(buckets)
    this.#higherBucket = new Int32Array(buckets)
    this.#lowerBucket = new Int32Array(buckets)
    this.#freeBuckets = Int32Array.from({ length: buckets }, (_, bucket) => bucket)
    this.#freeBucketsLeft = buckets
  }

  /** No count is further from the truth than this: 0 as long as every key seen has its own counter. */
  get errorMax(): number {
    return this.#isExact ? 0 : (this.#bucketCount[this.#lowest] as number)
  }

  add(key: Uint32Array, hash: number): void {
    this.seen += 1
    const found = this.table.find(key, hash)
    if (found !== NOT_FOUND) return this.#increment(found)
    if (this.table.size < this.#counters) return this.#begin(this.table.add(key, hash))
    this.#isExact = false
    const victim = this.#bucketHead[this.#lowest] as number
    this.#errors[victim] = this.#bucketCount[this.#lowest] as number
    this.table.replace(victim, key, hash)
    this.#increment(victim)
  }

  clear(): void {
    this.seen = 0
    this.#isExact = true
    this.table.clear()
    for (let bucket = 0; bucket < this.#freeBuckets.length; bucket++) this.#freeBuckets[bucket] = bucket
    this.#freeBucketsLeft = this.#freeBuckets.length
    this.#lowest = NONE
    this.#highest = NONE
  }

  /** The highest counts, equal ones by key. */
  top(length: number): Counted[] {
    const top: Counted[] = []
    for (
      let bucket = this.#highest;
      bucket !== NONE && top.length < length;
      bucket = this.#lowerBucket[bucket] as number
    ) {
      const equals: number[] = []
      for (
        let entry = this.#bucketHead[bucket] as number;
        entry !== NONE;
        entry = this.#nextInBucket[entry] as number
      ) {
        equals.push(entry)
      }
      equals.sort((a, b) => compareKeys(this.table, a, b))
      for (const entry of equals.slice(0, length - top.length)) top.push(this.counter(entry))
    }
    return top
  }

  /** What is known of one key. */
  counter(entry: number): Counted {
    const count = this.#bucketCount[this.#bucketOf[entry] as number] as number
    return { entry, count, error: this.#errors[entry] as number }
  }

  #begin(entry: number): void {
    this.#errors[entry] = 0
    const isThere = this.#lowest !== NONE && this.#bucketCount[this.#lowest] === 1
    this.#append(entry, isThere ? this.#lowest : this.#insertBucket(1, NONE))
  }

  #increment(entry: number): void {
    const bucket = this.#bucketOf[entry] as number
    const count = (this.#bucketCount[bucket] as number) + 1
    const higher = this.#higherBucket[bucket] as number
    const hasNext = higher !== NONE && this.#bucketCount[higher] === count
    if (!hasNext && this.#bucketHead[bucket] === this.#bucketTail[bucket]) {
      this.#bucketCount[bucket] = count
      return
    }
    const target = hasNext ? higher : this.#insertBucket(count, bucket)
    this.#unlink(entry, bucket)
    this.#append(entry, target)
  }

  #append(entry: number, bucket: number): void {
    const tail = this.#bucketTail[bucket] as number
    this.#bucketOf[entry] = bucket
    this.#nextInBucket[entry] = NONE
    this.#previousInBucket[entry] = tail
    if (tail === NONE) this.#bucketHead[bucket] = entry
    else this.#nextInBucket[tail] = entry
    this.#bucketTail[bucket] = entry
  }

  #unlink(entry: number, bucket: number): void {
    const next = this.#nextInBucket[entry] as number
    const previous = this.#previousInBucket[entry] as number
    if (previous === NONE) this.#bucketHead[bucket] = next
    else this.#nextInBucket[previous] = next
    if (next === NONE) this.#bucketTail[bucket] = previous
    else this.#previousInBucket[next] = previous
    if (this.#bucketHead[bucket] === NONE) this.#removeBucket(bucket)
  }

  /** A new bucket directly above `lower`, or below all when that is NONE. */
  #insertBucket(count: number, lower: number): number {
    const bucket = this.#freeBuckets[--this.#freeBucketsLeft] as number
    const higher = lower === NONE ? this.#lowest : (this.#higherBucket[lower] as number)
    this.#bucketCount[bucket] = count
    this.#bucketHead[bucket] = NONE
    this.#bucketTail[bucket] = NONE
    this.#lowerBucket[bucket] = lower
    this.#higherBucket[bucket] = higher
    if (lower === NONE) this.#lowest = bucket
    else this.#higherBucket[lower] = bucket
    if (higher === NONE) this.#highest = bucket
    else this.#lowerBucket[higher] = bucket
    return bucket
  }

  #removeBucket(bucket: number): void {
    const lower = this.#lowerBucket[bucket] as number
    const higher = this.#higherBucket[bucket] as number
    if (lower === NONE) this.#lowest = higher
    else this.#higherBucket[lower] = higher
    if (higher === NONE) this.#highest = lower
    else this.#lowerBucket[higher] = lower
    this.#freeBuckets[this.#freeBucketsLeft++] = bucket
  }
}
