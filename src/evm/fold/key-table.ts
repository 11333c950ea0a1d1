import assert from 'node:assert/strict'

export type KeyTableOptions = {
  /** 32-bit words in a key. */
  words: number
  entriesMax: number
  /** Initial capacity; the table grows as needed. */
  entries?: number
}

export const NOT_FOUND = -1

/** Keys in a row with their hashes, and an array that receives their entries. */
export type KeyRun = {
  readonly count: number
  readonly keys: Uint32Array
  readonly hashes: Int32Array
  readonly entries: Int32Array
}

/** A bucket holds an entry + 1 (0 is free) in its low bits, and bits of the key's hash above them. */
const ENTRY_BITS = 24
const ENTRY_MASK = 2 ** ENTRY_BITS - 1

/**
 * A hash table of fixed-length keys with open addressing over typed arrays: no object and no string per key. Entries are numbered
 * 0, 1, 2, … in order of arrival, so that callers keep values in arrays of their own. A key is passed as an array and the index of its
 * first word.
 */
export class KeyTable {
  size = 0
  readonly words: number
  readonly #entriesMax: number
  #keys: Uint32Array
  #hashes: Int32Array
  /** At most half full, so that probe sequences stay short. */
  #buckets: Int32Array
  /** Never read; it keeps the compiler from removing the loads of `#prefetch`. */
  fetched = 0

  constructor({ words, entriesMax, entries = 64 }: KeyTableOptions) {
    assert(words > 0 && entriesMax > 0, 'words and entriesMax are positive')
    assert(entriesMax < ENTRY_MASK, 'entry numbers fit a bucket')
    const capacity = 2 ** Math.ceil(Math.log2(Math.max(2, Math.min(entries, entriesMax))))
    this.words = words
    this.#entriesMax = entriesMax
    this.#keys = new Uint32Array(capacity * words)
    this.#hashes = new Int32Array(capacity)
    this.#buckets = new Int32Array(capacity * 2)
  }

  /** All keys one after the other; replaced when the table grows. */
  get keys(): Uint32Array {
    return this.#keys
  }

  /** Entries that fit before the table grows; arrays that callers keep have this length. */
  get capacity(): number {
    return this.#hashes.length
  }

  get isFull(): boolean {
    return this.size === this.#entriesMax
  }

  find(from: Uint32Array, at: number, hash: number): number {
    const buckets = this.#buckets
    const last = buckets.length - 1
    for (let bucket = hash & last; ; bucket = (bucket + 1) & last) {
      const held = buckets[bucket] as number
      if (held === 0) return NOT_FOUND
      const entry = (held & ENTRY_MASK) - 1
      if (((held ^ hash) & ~ENTRY_MASK) === 0 && this.#isKey(entry, from, at)) return entry
    }
  }

  /** Adds a key that the table does not have. Returns its entry, or NOT_FOUND when the table is full. */
  add(from: Uint32Array, at: number, hash: number): number {
    if (this.isFull) return NOT_FOUND
    if (this.size === this.#hashes.length) this.#grow()
    const entry = this.size++
    const keys = this.#keys
    const { words } = this
    const base = entry * words
    for (let word = 0; word < words; word++) keys[base + word] = from[at + word] as number
    this.#hashes[entry] = hash
    this.#insert(entry, hash)
    return entry
  }

  /** Whether `count` more keys can be added. */
  hasRoomFor(count: number): boolean {
    return this.size + count <= this.#entriesMax
  }

  /** Finds all keys of a run and adds the new ones. The table must have room for them. */
  enter({ count, keys, hashes, entries }: KeyRun): void {
    assert(this.hasRoomFor(count), 'the table has room for a run')
    this.#prefetch(hashes, count)
    const { words } = this
    for (let at = 0; at < count; at++) {
      const hash = hashes[at] as number
      const known = this.find(keys, at * words, hash)
      entries[at] = known === NOT_FOUND ? this.add(keys, at * words, hash) : known
    }
  }

  /** Removes all keys except those of `entries`, in ascending order; they become entries 0, 1, 2, … */
  keepOnly(entries: Int32Array): void {
    const { words } = this
    this.#clearBuckets()
    this.size = entries.length
    for (let entry = 0; entry < entries.length; entry++) {
      const old = entries[entry] as number
      this.#keys.copyWithin(entry * words, old * words, (old + 1) * words)
      this.#hashes[entry] = this.#hashes[old] as number
      this.#insert(entry, this.#hashes[entry] as number)
    }
  }

  clear(): void {
    this.#clearBuckets()
    this.size = 0
  }

  /**
   * Loads the memory that finding these keys will need. The loads do not depend on each other, so the processor does many of them at
   * once, where one search after the other would wait for each.
   */
  #prefetch(hashes: Int32Array, count: number): void {
    const buckets = this.#buckets
    const last = buckets.length - 1
    const keys = this.#keys
    const { words } = this
    let seen = 0
    for (let at = 0; at < count; at++) seen |= buckets[(hashes[at] as number) & last] as number
    for (let at = 0; at < count; at++) {
      const entry = ((buckets[(hashes[at] as number) & last] as number) & ENTRY_MASK) - 1
      if (entry >= 0) seen |= keys[entry * words] as number
    }
    this.fetched = seen
  }

  #isKey(entry: number, from: Uint32Array, at: number): boolean {
    const keys = this.#keys
    const { words } = this
    const base = entry * words
    for (let word = 0; word < words; word++) if (keys[base + word] !== from[at + word]) return false
    return true
  }

  #insert(entry: number, hash: number): void {
    const buckets = this.#buckets
    const last = buckets.length - 1
    let bucket = hash & last
    while (buckets[bucket] !== 0) bucket = (bucket + 1) & last
    buckets[bucket] = (hash & ~ENTRY_MASK) | (entry + 1)
  }

  /** Clears single buckets when the table is sparse, so that one large block does not slow down every later one. */
  #clearBuckets(): void {
    const buckets = this.#buckets
    if (this.size * 16 > buckets.length) {
      buckets.fill(0)
      return
    }
    const last = buckets.length - 1
    for (let entry = 0; entry < this.size; entry++) {
      let bucket = (this.#hashes[entry] as number) & last
      // Buckets before it may already be free.
      while (((buckets[bucket] as number) & ENTRY_MASK) !== entry + 1) bucket = (bucket + 1) & last
      buckets[bucket] = 0
    }
  }

  #grow(): void {
    const capacity = this.#hashes.length * 2
    this.#keys = resize(this.#keys, new Uint32Array(capacity * this.words))
    this.#hashes = resize(this.#hashes, new Int32Array(capacity))
    this.#buckets = new Int32Array(capacity * 2)
    for (let entry = 0; entry < this.size; entry++) this.#insert(entry, this.#hashes[entry] as number)
  }
}

/** Copies an array into a larger one. */
export function resize<A extends Uint32Array | Int32Array | Float64Array | Uint8Array>(from: A, to: A): A {
  to.set(from)
  return to
}
