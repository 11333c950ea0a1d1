import assert from 'node:assert/strict'
import { compareKeys } from './key-order.ts'
import { KeyTable, NOT_FOUND, resize } from './key-table.ts'

const NONE = -1

export type Counted = { entry: number; count: number; error: number }

/**
 * Space-Saving (Metwally, Agrawal, El Abbadi 2005): the most frequent keys of a stream, with m counters. A new key without a free
 * counter takes over the one with the smallest count and goes on from there, remembering that count as its possible error. So for
 * every key kept: true count ≤ count ≤ true count + error, error ≤ smallest count ≤ N / m; and every key that truly came more than
 * N / m times is kept. Counters of equal count share a bucket, so that each step takes constant time; of equal minima the one that
 * reached that count first goes.
 *
 * A key that loses its counter stays in the table until that is trimmed: forgetting many at once costs far less than taking each out,
 * and what else is known of a key (its part in the open block) can be kept by the number of its entry.
 */
export class SpaceSaving {
  /** Keys seen, repetitions included: the N of the bounds. */
  seen = 0
  readonly table: KeyTable
  /** How often keys were forgotten; entries have new numbers since. */
  trims = 0
  readonly #counters: number
  /** For each entry of the table its counter, or NONE. */
  #counterOf: Int32Array
  /** For each counter in use its entry. */
  readonly #entryOf: Int32Array
  #used = 0
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

  constructor({ counters, words, keysMax }: { counters: number; words: number; keysMax: number }) {
    assert(counters > 0 && keysMax > counters, 'there is something to count with, and room for one key more')
    this.table = new KeyTable({ words, entriesMax: keysMax, entries: counters * 2 })
    this.#counters = counters
    this.#counterOf = new Int32Array(this.table.room)
    this.#entryOf = new Int32Array(counters)
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

  /** Counts a key and returns its entry. */
  add(from: Uint32Array, at: number, hash: number): number {
    this.seen += 1
    const known = this.table.find(from, at, hash)
    const entry = known === NOT_FOUND ? this.#addKey(from, at, hash) : known
    const counter = this.#counterOf[entry] as number
    if (counter !== NONE) this.#increment(counter)
    else if (this.#used < this.#counters) this.#begin(entry)
    else this.#takeOver(entry)
    return entry
  }

  /** Forgets the keys that have no counter. */
  trim(): void {
    this.trims += 1
    const kept = this.#entryOf.slice(0, this.#used).sort()
    const counters = kept.map((entry) => this.#counterOf[entry] as number)
    this.table.keepOnly(kept)
    for (let entry = 0; entry < kept.length; entry++) {
      const counter = counters[entry] as number
      this.#counterOf[entry] = counter
      this.#entryOf[counter] = entry
    }
  }

  /** Begins to count anew; keys keep their entries. */
  clear(): void {
    this.seen = 0
    this.#isExact = true
    this.#used = 0
    this.#counterOf.fill(NONE, 0, this.table.size)
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
      const equals: Counted[] = []
      for (
        let counter = this.#bucketHead[bucket] as number;
        counter !== NONE;
        counter = this.#nextInBucket[counter] as number
      ) {
        equals.push(this.#counted(counter))
      }
      equals.sort((a, b) => compareKeys(this.table, a.entry, b.entry))
      top.push(...equals.slice(0, length - top.length))
    }
    return top
  }

  /** What is known of the key of an entry; undefined when it has no counter. */
  counter(entry: number): Counted | undefined {
    const counter = this.#counterOf[entry] as number
    return counter === NONE ? undefined : this.#counted(counter)
  }

  #counted(counter: number): Counted {
    const count = this.#bucketCount[this.#bucketOf[counter] as number] as number
    return { entry: this.#entryOf[counter] as number, count, error: this.#errors[counter] as number }
  }

  #addKey(from: Uint32Array, at: number, hash: number): number {
    const { table } = this
    if (table.isFull) this.trim()
    const entry = table.add(from, at, hash)
    if (entry >= this.#counterOf.length) this.#counterOf = resize(this.#counterOf, new Int32Array(table.room))
    this.#counterOf[entry] = NONE
    return entry
  }

  #give(counter: number, entry: number): void {
    this.#entryOf[counter] = entry
    this.#counterOf[entry] = counter
  }

  #takeOver(entry: number): void {
    this.#isExact = false
    const victim = this.#bucketHead[this.#lowest] as number
    this.#errors[victim] = this.#bucketCount[this.#lowest] as number
    this.#counterOf[this.#entryOf[victim] as number] = NONE
    this.#give(victim, entry)
    this.#increment(victim)
  }

  #begin(entry: number): void {
    const counter = this.#used++
    this.#give(counter, entry)
    this.#errors[counter] = 0
    const isThere = this.#lowest !== NONE && this.#bucketCount[this.#lowest] === 1
    this.#append(counter, isThere ? this.#lowest : this.#insertBucket(1, NONE))
  }

  #increment(counter: number): void {
    const bucket = this.#bucketOf[counter] as number
    const count = (this.#bucketCount[bucket] as number) + 1
    const higher = this.#higherBucket[bucket] as number
    const hasNext = higher !== NONE && this.#bucketCount[higher] === count
    if (!hasNext && this.#bucketHead[bucket] === this.#bucketTail[bucket]) {
      this.#bucketCount[bucket] = count
      return
    }
    const target = hasNext ? higher : this.#insertBucket(count, bucket)
    this.#unlink(counter, bucket)
    this.#append(counter, target)
  }

  #append(counter: number, bucket: number): void {
    const tail = this.#bucketTail[bucket] as number
    this.#bucketOf[counter] = bucket
    this.#nextInBucket[counter] = NONE
    this.#previousInBucket[counter] = tail
    if (tail === NONE) this.#bucketHead[bucket] = counter
    else this.#nextInBucket[tail] = counter
    this.#bucketTail[bucket] = counter
  }

  #unlink(counter: number, bucket: number): void {
    const next = this.#nextInBucket[counter] as number
    const previous = this.#previousInBucket[counter] as number
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
