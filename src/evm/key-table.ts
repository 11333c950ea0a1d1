import assert from 'node:assert/strict'

export type KeyTableOptions = {
  /** 32-bit words in a key. */
  words: number
  entriesMax: number
  /** Room made at once; more is made as it is needed. */
  entries?: number
}

export const NOT_FOUND = -1

/**
 * Finds fixed-length keys by open addressing over typed arrays: no object and no string per key. Entries are numbered 0, 1, 2, … in
 * order of arrival, so that callers keep what belongs to a key in arrays of their own.
 */
export class KeyTable {
  size = 0
  readonly words: number
  readonly #entriesMax: number
  #keys: Uint32Array
  #hashes: Int32Array
  /**
   * Pairs of entry number + 1 (0 is free) and hash, side by side so that a probe that finds another key touches nothing else. At most
   * half full, so that probes end soon.
   */
  #places: Int32Array
  #mask: number

  constructor({ words, entriesMax, entries = 64 }: KeyTableOptions) {
    assert(words > 0 && entriesMax > 0, 'a table has keys and room for them')
    const room = 2 ** Math.ceil(Math.log2(Math.max(2, Math.min(entries, entriesMax))))
    this.words = words
    this.#entriesMax = entriesMax
    this.#keys = new Uint32Array(room * words)
    this.#hashes = new Int32Array(room)
    this.#places = new Int32Array(room * 4)
    this.#mask = room * 4 - 2
  }

  /** All keys one after the other; replaced when the table grows. */
  get keys(): Uint32Array {
    return this.#keys
  }

  /** How many entries fit before the arrays grow; arrays beside the table are as long as this. */
  get room(): number {
    return this.#hashes.length
  }

  find(key: Uint32Array, hash: number): number {
    const places = this.#places
    const mask = this.#mask
    for (let place = (hash << 1) & mask; ; place = (place + 2) & mask) {
      const entry = (places[place] as number) - 1
      if (entry < 0) return NOT_FOUND
      if (places[place + 1] === hash && this.#isKey(entry, key)) return entry
    }
  }

  /** Adds a key that is not there yet. Returns its entry, or NOT_FOUND when the table is full. */
  add(key: Uint32Array, hash: number): number {
    if (this.size === this.#entriesMax) return NOT_FOUND
    if (this.size === this.#hashes.length) this.#grow()
    const entry = this.size++
    this.#write(entry, key, hash)
    return entry
  }

  /** Gives an entry to another key that is not there yet. */
  replace(entry: number, key: Uint32Array, hash: number): void {
    this.#remove(entry)
    this.#write(entry, key, hash)
  }

  clear(): void {
    // A block that was large once must not make every later one pay for clearing a large table.
    if (this.size * 16 > this.#places.length) this.#places.fill(0)
    else for (let entry = 0; entry < this.size; entry++) this.#places[this.#placeOf(entry)] = 0
    this.size = 0
  }

  #isKey(entry: number, key: Uint32Array): boolean {
    const keys = this.#keys
    const { words } = this
    const base = entry * words
    for (let word = 0; word < words; word++) if (keys[base + word] !== key[word]) return false
    return true
  }

  #write(entry: number, key: Uint32Array, hash: number): void {
    const base = entry * this.words
    for (let word = 0; word < this.words; word++) this.#keys[base + word] = key[word] as number
    this.#hashes[entry] = hash
    this.#place(entry, hash)
  }

  #place(entry: number, hash: number): void {
    let place = (hash << 1) & this.#mask
    while (this.#places[place] !== 0) place = (place + 2) & this.#mask
    this.#places[place] = entry + 1
    this.#places[place + 1] = hash
  }

  /** Unlike `find` it does not end at a free place, so it may be used while places are being freed. */
  #placeOf(entry: number): number {
    const mask = this.#mask
    let place = ((this.#hashes[entry] as number) << 1) & mask
    while (this.#places[place] !== entry + 1) place = (place + 2) & mask
    return place
  }

  /** Frees a place and moves later keys of the same run up, so that no search ends too early. */
  #remove(entry: number): void {
    const places = this.#places
    const mask = this.#mask
    let free = this.#placeOf(entry)
    for (let place = (free + 2) & mask; places[place] !== 0; place = (place + 2) & mask) {
      const home = ((places[place + 1] as number) << 1) & mask
      if (((place - home) & mask) < ((place - free) & mask)) continue
      places[free] = places[place] as number
      places[free + 1] = places[place + 1] as number
      free = place
    }
    places[free] = 0
  }

  #grow(): void {
    const room = this.#hashes.length * 2
    this.#keys = resize(this.#keys, new Uint32Array(room * this.words))
    this.#hashes = resize(this.#hashes, new Int32Array(room))
    this.#places = new Int32Array(room * 4)
    this.#mask = room * 4 - 2
    for (let entry = 0; entry < this.size; entry++) this.#place(entry, this.#hashes[entry] as number)
  }
}

/** Moves what an array held into a larger one. */
export function resize<A extends Uint32Array | Int32Array | Float64Array | Uint8Array>(from: A, to: A): A {
  to.set(from)
  return to
}
