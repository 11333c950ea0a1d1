import assert from 'node:assert/strict'
import { compareKeys } from './key-order.ts'
import { type KeyRun, KeyTable, resize } from './key-table.ts'

const NONE = -1

/**
 * Counters and buckets are records of four numbers in two arrays, identified by their start index, so that the fields of one record
 * share a cache line.
 */
const RECORD_SHIFT = 2
const RECORD = 1 << RECORD_SHIFT
const COUNTER = { bucket: 0, next: 1, previous: 2, entry: 3 } as const
const BUCKET = { head: 0, tail: 1, higher: 2, lower: 3 } as const

export type Counted = { entry: number; count: number; error: number }

/**
 * Space-Saving (Metwally, Agrawal, El Abbadi 2005): the most frequent keys of a stream, with m counters. A new key without a free
 * counter replaces the key with the smallest count and continues from that count, which is stored as its possible error. For every key
 * kept: true count ≤ count ≤ true count + error, error ≤ smallest count ≤ N / m; and every key that occurred more than N / m times is
 * kept. Counters of equal count share a bucket, so that each step takes constant time; of equal minima the one that reached that count
 * first is replaced.
 *
 * A key that loses its counter stays in the table until the next trim: removing many keys at once costs far less than removing each, and
 * other data of a key (its part in the open block) can be stored by entry number.
 */
export class SpaceSaving {
  /** Keys seen, repetitions included: the N of the bounds. */
  seen = 0
  readonly table: KeyTable
  /** How often the table was trimmed, which renumbers its entries. */
  trims = 0
  readonly #counters: number
  /** For each entry of the table its counter, or NONE. */
  #counterOf: Int32Array
  /** The counters, those in use first. */
  readonly #counter: Int32Array
  #used = 0
  /** For each counter in use, the maximum by which its count is too high. */
  readonly #errors: Float64Array
  readonly #bucket: Int32Array
  readonly #bucketCount: Float64Array
  readonly #freeBuckets: Int32Array
  #freeBucketsLeft = 0
  #isExact = true
  #lowest = NONE
  #highest = NONE

  constructor({ counters, words, keysMax }: { counters: number; words: number; keysMax: number }) {
    assert(counters > 0 && keysMax > counters, 'keysMax is above the number of counters')
    this.table = new KeyTable({ words, entriesMax: keysMax, entries: counters * 2 })
    this.#counters = counters
    this.#counterOf = new Int32Array(this.table.capacity)
    this.#counter = new Int32Array(counters * RECORD)
    this.#errors = new Float64Array(counters)
    // One more than counters: a counter gets its new bucket before it leaves the old one.
    const buckets = counters + 1
    this.#bucket = new Int32Array(buckets * RECORD)
    this.#bucketCount = new Float64Array(buckets)
    this.#freeBuckets = new Int32Array(buckets)
    this.clear()
  }

  /** Maximum error of any count: 0 as long as every key seen has its own counter. */
  get errorMax(): number {
    return this.#isExact ? 0 : this.#countOf(this.#lowest)
  }

  /** Counts the keys of a run, in order; the run gets their entries. */
  add(run: KeyRun): void {
    const { table } = this
    if (!table.hasRoomFor(run.count)) this.trim()
    const known = table.size
    table.enter(run)
    if (table.capacity > this.#counterOf.length)
      this.#counterOf = resize(this.#counterOf, new Int32Array(table.capacity))
    this.#counterOf.fill(NONE, known, table.size)
    this.seen += run.count
    for (let at = 0; at < run.count; at++) this.#count(run.entries[at] as number)
  }

  /** Removes the keys that have no counter. */
  trim(): void {
    this.trims += 1
    const kept = Int32Array.from({ length: this.#used }, (_, counter) => this.#entryOf(counter * RECORD)).sort()
    const counters = kept.map((entry) => this.#counterOf[entry] as number)
    this.table.keepOnly(kept)
    for (let entry = 0; entry < kept.length; entry++) this.#assign(counters[entry] as number, entry)
  }

  /** Resets all counts; keys keep their entries. */
  clear(): void {
    this.seen = 0
    this.#isExact = true
    this.#used = 0
    this.#counterOf.fill(NONE, 0, this.table.size)
    const free = this.#freeBuckets
    for (let bucket = 0; bucket < free.length; bucket++) free[bucket] = bucket * RECORD
    this.#freeBucketsLeft = free.length
    this.#lowest = NONE
    this.#highest = NONE
  }

  /** The highest counts, ties by key. */
  top(length: number): Counted[] {
    const top: Counted[] = []
    for (let bucket = this.#highest; bucket !== NONE && top.length < length; ) {
      const equals: Counted[] = []
      for (let counter = this.#bucket[bucket + BUCKET.head] as number; counter !== NONE; ) {
        equals.push(this.#counted(counter))
        counter = this.#counter[counter + COUNTER.next] as number
      }
      equals.sort((a, b) => compareKeys(this.table, a.entry, b.entry))
      top.push(...equals.slice(0, length - top.length))
      bucket = this.#bucket[bucket + BUCKET.lower] as number
    }
    return top
  }

  /** Count and error of an entry's key; undefined when it has no counter. */
  counter(entry: number): Counted | undefined {
    const counter = this.#counterOf[entry] as number
    return counter === NONE ? undefined : this.#counted(counter)
  }

  #counted(counter: number): Counted {
    const count = this.#countOf(this.#counter[counter + COUNTER.bucket] as number)
    return { entry: this.#entryOf(counter), count, error: this.#errors[counter >> RECORD_SHIFT] as number }
  }

  #countOf(bucket: number): number {
    return this.#bucketCount[bucket >> RECORD_SHIFT] as number
  }

  #entryOf(counter: number): number {
    return this.#counter[counter + COUNTER.entry] as number
  }

  #assign(counter: number, entry: number): void {
    this.#counter[counter + COUNTER.entry] = entry
    this.#counterOf[entry] = counter
  }

  #count(entry: number): void {
    const counter = this.#counterOf[entry] as number
    if (counter !== NONE) this.#increment(counter)
    else if (this.#used < this.#counters) this.#begin(entry)
    else this.#takeOver(entry)
  }

  #begin(entry: number): void {
    const counter = this.#used * RECORD
    this.#errors[this.#used++] = 0
    this.#assign(counter, entry)
    const isThere = this.#lowest !== NONE && this.#countOf(this.#lowest) === 1
    this.#append(counter, isThere ? this.#lowest : this.#insertBucket(1, NONE))
  }

  #takeOver(entry: number): void {
    this.#isExact = false
    const victim = this.#bucket[this.#lowest + BUCKET.head] as number
    this.#errors[victim >> RECORD_SHIFT] = this.#countOf(this.#lowest)
    this.#counterOf[this.#entryOf(victim)] = NONE
    this.#assign(victim, entry)
    this.#increment(victim)
  }

  #increment(counter: number): void {
    const buckets = this.#bucket
    const counts = this.#bucketCount
    const bucket = this.#counter[counter + COUNTER.bucket] as number
    const count = (counts[bucket >> RECORD_SHIFT] as number) + 1
    const higher = buckets[bucket + BUCKET.higher] as number
    const hasNext = higher !== NONE && counts[higher >> RECORD_SHIFT] === count
    if (!hasNext && buckets[bucket + BUCKET.head] === buckets[bucket + BUCKET.tail]) {
      counts[bucket >> RECORD_SHIFT] = count
      return
    }
    const target = hasNext ? higher : this.#insertBucket(count, bucket)
    this.#unlink(counter, bucket)
    this.#append(counter, target)
  }

  #append(counter: number, bucket: number): void {
    const counters = this.#counter
    const tail = this.#bucket[bucket + BUCKET.tail] as number
    counters[counter + COUNTER.bucket] = bucket
    counters[counter + COUNTER.next] = NONE
    counters[counter + COUNTER.previous] = tail
    if (tail === NONE) this.#bucket[bucket + BUCKET.head] = counter
    else counters[tail + COUNTER.next] = counter
    this.#bucket[bucket + BUCKET.tail] = counter
  }

  #unlink(counter: number, bucket: number): void {
    const counters = this.#counter
    const next = counters[counter + COUNTER.next] as number
    const previous = counters[counter + COUNTER.previous] as number
    if (previous === NONE) this.#bucket[bucket + BUCKET.head] = next
    else counters[previous + COUNTER.next] = next
    if (next === NONE) this.#bucket[bucket + BUCKET.tail] = previous
    else counters[next + COUNTER.previous] = previous
    if (previous === NONE && next === NONE) this.#removeBucket(bucket)
  }

  /** A new bucket directly above `lower`, or below all when that is NONE. */
  #insertBucket(count: number, lower: number): number {
    const buckets = this.#bucket
    const bucket = this.#freeBuckets[--this.#freeBucketsLeft] as number
    const higher = lower === NONE ? this.#lowest : (buckets[lower + BUCKET.higher] as number)
    this.#bucketCount[bucket >> RECORD_SHIFT] = count
    buckets[bucket + BUCKET.head] = NONE
    buckets[bucket + BUCKET.tail] = NONE
    buckets[bucket + BUCKET.higher] = higher
    buckets[bucket + BUCKET.lower] = lower
    if (lower === NONE) this.#lowest = bucket
    else buckets[lower + BUCKET.higher] = bucket
    if (higher === NONE) this.#highest = bucket
    else buckets[higher + BUCKET.lower] = bucket
    return bucket
  }

  #removeBucket(bucket: number): void {
    const buckets = this.#bucket
    const higher = buckets[bucket + BUCKET.higher] as number
    const lower = buckets[bucket + BUCKET.lower] as number
    if (lower === NONE) this.#lowest = higher
    else buckets[lower + BUCKET.higher] = higher
    if (higher === NONE) this.#highest = lower
    else buckets[higher + BUCKET.lower] = lower
    this.#freeBuckets[this.#freeBucketsLeft++] = bucket
  }
}
