import assert from 'node:assert/strict'

export type KeyTableOptions = {
  /** 32-bit words in a key. */
  words: number
  entriesMax: number
  /** Room made at once; more is made as it is needed. */
  entries?: number
}

export const NOT_FOUND = -1

/** Keys one after the other with their hashes, and room for the entries they get. */
export type KeyRun = {
  readonly count: number
  readonly keys: Uint32Array
  readonly hashes: Int32Array
  readonly entries: Int32Array
}

/** A place holds the number of an entry + 1 (0 is free) in its low bits, and above them bits of the key's hash. */
const ENTRY_BITS = 24
const ENTRY_MASK = 2 ** ENTRY_BITS - 1

/**
 * Finds fixed-length keys by open addressing over typed arrays: no object and no string per key. Entries are numbered 0, 1, 2, … in
 * order of arrival, so that callers keep what belongs to a key in arrays of their own. A key is given as the array it stands in and
 * the place of its first word.
 */
export class KeyTable {
  size = 0
  readonly words: number
  readonly #entriesMax: number
  #keys: Uint32Array
  #hashes: Int32Array
  /** Small, since memory decides: a probe that meets another key seldom looks further. At most half full, so that probes end soon. */
  #positions: Int32Array
  /** Read by nobody; without it the looks of `#fetchAhead` would have no effect, and the compiler would leave them out. */
  fetched = 0

  constructor({ words, entriesMax, entries = 64 }: KeyTableOptions) {
    assert(words > 0 && entriesMax > 0, 'a table has keys and room for them')
    assert(entriesMax < ENTRY_MASK, 'entry numbers fit a place')
    const room = 2 ** Math.ceil(Math.log2(Math.max(2, Math.min(entries, entriesMax))))
    this.words = words
    this.#entriesMax = entriesMax
    this.#keys = new Uint32Array(room * words)
    this.#hashes = new Int32Array(room)
    this.#positions = new Int32Array(room * 2)
  }

  /** All keys one after the other; replaced when the table grows. */
  get keys(): Uint32Array {
    return this.#keys
  }

  /** How many entries fit before the arrays grow; arrays beside the table are as long as this. */
  get room(): number {
    return this.#hashes.length
  }

  get isFull(): boolean {
    return this.size === this.#entriesMax
  }

  find(from: Uint32Array, at: number, hash: number): number {
    const positions = this.#positions
    const last = positions.length - 1
    for (let position = hash & last; ; position = (position + 1) & last) {
      const held = positions[position] as number
      if (held === 0) return NOT_FOUND
      const entry = (held & ENTRY_MASK) - 1
      if (((held ^ hash) & ~ENTRY_MASK) === 0 && this.#isKey(entry, from, at)) return entry
    }
  }

  /** Adds a key that is not there yet. Returns its entry, or NOT_FOUND when the table is full. */
  add(from: Uint32Array, at: number, hash: number): number {
    if (this.isFull) return NOT_FOUND
    if (this.size === this.#hashes.length) this.#grow()
    const entry = this.size++
    const keys = this.#keys
    const { words } = this
    const base = entry * words
    for (let word = 0; word < words; word++) keys[base + word] = from[at + word] as number
    this.#hashes[entry] = hash
    this.#position(entry, hash)
    return entry
  }

  /** Whether so many keys more can be added. */
  hasRoomFor(count: number): boolean {
    return this.size + count <= this.#entriesMax
  }

  /** Finds all keys of a run and adds those that are not there yet, for which there must be room. */
  enter({ count, keys, hashes, entries }: KeyRun): void {
    assert(this.hasRoomFor(count), 'the table has room for a run')
    this.#fetchAhead(hashes, count)
    const { words } = this
    for (let at = 0; at < count; at++) {
      const hash = hashes[at] as number
      const known = this.find(keys, at * words, hash)
      entries[at] = known === NOT_FOUND ? this.add(keys, at * words, hash) : known
    }
  }

  /** Forgets all keys but those of `entries`, given in ascending order; they become entries 0, 1, 2, … */
  keepOnly(entries: Int32Array): void {
    const { words } = this
    this.#clearPositions()
    this.size = entries.length
    for (let entry = 0; entry < entries.length; entry++) {
      const old = entries[entry] as number
      this.#keys.copyWithin(entry * words, old * words, (old + 1) * words)
      this.#hashes[entry] = this.#hashes[old] as number
      this.#position(entry, this.#hashes[entry] as number)
    }
  }

  clear(): void {
    this.#clearPositions()
    this.size = 0
  }

  /**
   * Looks at the memory that finding these keys will need. The looks do not depend on each other, so the processor waits for many of
   * them at once, where one search after the other would wait for each.
   */
  #fetchAhead(hashes: Int32Array, count: number): void {
    const positions = this.#positions
    const last = positions.length - 1
    const keys = this.#keys
    const { words } = this
    let seen = 0
    for (let at = 0; at < count; at++) seen |= positions[(hashes[at] as number) & last] as number
    for (let at = 0; at < count; at++) {
      const entry = ((positions[(hashes[at] as number) & last] as number) & ENTRY_MASK) - 1
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

  #position(entry: number, hash: number): void {
    const positions = this.#positions
    const last = positions.length - 1
    let position = hash & last
    while (positions[position] !== 0) position = (position + 1) & last
    positions[position] = (hash & ~ENTRY_MASK) | (entry + 1)
  }

  /** A block that was large once must not make every later one pay for clearing a large table. */
  #clearPositions(): void {
    const positions = this.#positions
    if (this.size * 16 > positions.length) {
      positions.fill(0)
      return
    }
    const last = positions.length - 1
    for (let entry = 0; entry < this.size; entry++) {
      let position = (this.#hashes[entry] as number) & last
      // Places before it may be free already.
      while (((positions[position] as number) & ENTRY_MASK) !== entry + 1) position = (position + 1) & last
      positions[position] = 0
    }
  }

  #grow(): void {
    const room = this.#hashes.length * 2
    this.#keys = resize(this.#keys, new Uint32Array(room * this.words))
    this.#hashes = resize(this.#hashes, new Int32Array(room))
    this.#positions = new Int32Array(room * 2)
    for (let entry = 0; entry < this.size; entry++) this.#position(entry, this.#hashes[entry] as number)
  }
}

/** Moves what an array held into a larger one. */
export function resize<A extends Uint32Array | Int32Array | Float64Array | Uint8Array>(from: A, to: A): A {
  to.set(from)
  return to
}
