import { crc32 } from 'node:zlib'
import { TextLog } from './text-log.ts'

/** Decodes a value from its text, and gives its key. */
export type Packing<V> = {
  unpack(text: string): V
  keyOf(value: V): string
}

/** A value as text, with its key. */
export type Packed = { readonly key: string; readonly text: string }

/** Cache of unpacked values; when it is full, it is cleared. */
const UNPACKED_MAX = 16_384
/** The log is rewritten when it is larger than this many times the live bytes plus WASTE_BYTES_MIN. */
const WASTE_MAX = 2
const WASTE_BYTES_MIN = 4 * 1024 * 1024
const CELLS_MIN = 16

/** A map as it is posted to other threads: they read the same memory. */
export type SharedMap = Index & { readonly chunks: readonly SharedArrayBuffer[] }

/** An open-addressing hash table: each cell has the log position plus one (0 when empty) and the hash of the key. */
type Index = {
  positions: Uint32Array
  hashes: Uint32Array
  size: number
  /** Bytes of the log that the positions refer to. */
  liveBytes: number
}

/**
 * An immutable map for very many small records: a draft becomes a new map, and readers of the old one are not affected. Values are packed in an
 * append-only log that all versions share; each version has its own index. Both are shared memory, so other threads read a version without a copy.
 * The garbage collector sees a few large buffers instead of a million
 * small objects, which keeps memory small and pauses short. Entries cannot be removed.
 */
export class PackedMap<V> {
  readonly #packing: Packing<V>
  readonly #log: TextLog
  readonly #index: Index
  readonly #unpacked = new Map<string, V>()

  private constructor(packing: Packing<V>, log: TextLog, index: Index) {
    this.#packing = packing
    this.#log = log
    this.#index = index
  }

  static empty<V>(packing: Packing<V>): PackedMap<V> {
    return new PackedMap(packing, new TextLog(), createIndex(CELLS_MIN))
  }

  /** The map that another thread has shared. It is read-only: drafts are made by the thread that writes. */
  static fromShared<V>(packing: Packing<V>, { chunks, ...index }: SharedMap): PackedMap<V> {
    return new PackedMap(packing, new TextLog(chunks), index)
  }

  shared(): SharedMap {
    return { ...this.#index, chunks: this.#log.chunks }
  }

  get size(): number {
    return this.#index.size
  }

  get(key: string): V | undefined {
    const known = this.#unpacked.get(key)
    if (known !== undefined) return known
    const { value } = this.#find(this.#index, key, crc32(key))
    if (value === undefined) return undefined
    if (this.#unpacked.size >= UNPACKED_MAX) this.#unpacked.clear()
    this.#unpacked.set(key, value)
    return value
  }

  *values(): Generator<V> {
    for (let cell = 0; cell < this.#index.positions.length; cell++) {
      const value = this.#read(this.#index, cell)
      if (value !== undefined) yield value
    }
  }

  /** Collects changes for a new map. Without a change `finish` returns this map. */
  draft(): { set(change: Packed): void; finish(): PackedMap<V> } {
    let index: Index | undefined
    return {
      set: ({ key, text }) => {
        index ??= copyIndex(this.#index)
        if (index.size * 3 > index.positions.length * 2) index = grownIndex(index)
        const hash = crc32(key)
        const { cell } = this.#find(index, key, hash)
        const old = index.positions[cell] as number
        if (old === 0) index.size += 1
        else index.liveBytes -= this.#log.bytesAt(old - 1)
        const position = this.#log.append(text)
        index.positions[cell] = position + 1
        index.hashes[cell] = hash
        index.liveBytes += this.#log.bytesAt(position)
      },
      finish: () => {
        if (index === undefined) return this
        const isWasteful = this.#log.bytes > WASTE_MAX * index.liveBytes + WASTE_BYTES_MIN
        const next = new PackedMap(this.#packing, this.#log, index)
        return isWasteful ? next.#rewritten() : next
      },
    }
  }

  /** The cell of the key with its value, or the empty cell where it is to be inserted. A value is decoded once: that is most of the work. */
  #find(index: Index, key: string, hash: number): { readonly cell: number; readonly value: V | undefined } {
    const last = index.positions.length - 1
    let cell = hash & last
    while (index.positions[cell] !== 0) {
      if (index.hashes[cell] === hash) {
        const value = this.#read(index, cell)
        if (value !== undefined && this.#packing.keyOf(value) === key) return { cell, value }
      }
      cell = (cell + 1) & last
    }
    return { cell, value: undefined }
  }

  #read(index: Index, cell: number): V | undefined {
    const position = index.positions[cell] as number
    return position === 0 ? undefined : this.#packing.unpack(this.#log.read(position - 1))
  }

  #rewritten(): PackedMap<V> {
    const log = new TextLog()
    const index = copyIndex(this.#index)
    for (const [cell, position] of index.positions.entries()) {
      if (position !== 0) index.positions[cell] = log.append(this.#log.read(position - 1)) + 1
    }
    return new PackedMap(this.#packing, log, index)
  }
}

function createIndex(cells: number): Index {
  return { positions: createCells(cells), hashes: createCells(cells), size: 0, liveBytes: 0 }
}

function createCells(cells: number): Uint32Array {
  return new Uint32Array(new SharedArrayBuffer(cells * Uint32Array.BYTES_PER_ELEMENT))
}

function copyIndex(index: Index): Index {
  const copy = createIndex(index.positions.length)
  copy.positions.set(index.positions)
  copy.hashes.set(index.hashes)
  return { ...copy, size: index.size, liveBytes: index.liveBytes }
}

/** Doubles the cells. The stored hashes give the new cell of each entry, so nothing is unpacked. */
function grownIndex(index: Index): Index {
  const grown = { ...createIndex(index.positions.length * 2), size: index.size, liveBytes: index.liveBytes }
  const last = grown.positions.length - 1
  for (const [from, position] of index.positions.entries()) {
    if (position === 0) continue
    const hash = index.hashes[from] as number
    let cell = hash & last
    while (grown.positions[cell] !== 0) cell = (cell + 1) & last
    grown.positions[cell] = position
    grown.hashes[cell] = hash
  }
  return grown
}
