import { crc32 } from 'node:zlib'
import { TextLog } from '../audit/text-log.ts'

/** How a value is had back from its text, and what it is found by. */
export type Packing<V> = {
  unpack(text: string): V
  keyOf(value: V): string
}

/** A value as text, with the key it is found by. */
export type Packed = { readonly key: string; readonly text: string }

/** Unpacked values kept for the next caller. When there are more, all are dropped: they are quickly made again. */
const UNPACKED_MAX = 16_384
/** The log is written anew when it holds this many times what its newest map needs, and a few chunks at least. */
const WASTE_MAX = 2
const WASTE_BYTES_MIN = 4 * 1024 * 1024
const SLOTS_MIN = 16

/** An open-addressing table: in each slot the position in the log plus one (0 for none) and the hash of the key. */
type Index = {
  positions: Uint32Array
  hashes: Uint32Array
  size: number
  /** Bytes of the log that the positions point to. */
  liveBytes: number
}

/**
 * A map for very many small records that never changes: a draft of it becomes a new map and leaves the old to those who still read it. Values lie
 * packed in a log that all maps of one history share and that only grows; each map has its own index into it. The garbage collector sees a few
 * large buffers instead of a million small objects, which keeps memory small and pauses short. Nothing can be removed.
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
    return new PackedMap(packing, new TextLog(), createIndex(SLOTS_MIN))
  }

  get size(): number {
    return this.#index.size
  }

  get(key: string): V | undefined {
    const known = this.#unpacked.get(key)
    if (known !== undefined) return known
    const value = this.#read(this.#index, this.#findSlot(this.#index, key, crc32(key)))
    if (value === undefined) return undefined
    if (this.#unpacked.size >= UNPACKED_MAX) this.#unpacked.clear()
    this.#unpacked.set(key, value)
    return value
  }

  *values(): Generator<V> {
    for (let slot = 0; slot < this.#index.positions.length; slot++) {
      const value = this.#read(this.#index, slot)
      if (value !== undefined) yield value
    }
  }

  /** Collects changes and makes the map that has them. Without any change it is this map. */
  draft(): { set(change: Packed): void; finish(): PackedMap<V> } {
    let index: Index | undefined
    return {
      set: ({ key, text }) => {
        index ??= copyIndex(this.#index)
        if (index.size * 3 > index.positions.length * 2) index = grownIndex(index)
        const hash = crc32(key)
        const slot = this.#findSlot(index, key, hash)
        const old = index.positions[slot] as number
        if (old === 0) index.size += 1
        else index.liveBytes -= this.#log.bytesAt(old - 1)
        const position = this.#log.append(text)
        index.positions[slot] = position + 1
        index.hashes[slot] = hash
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

  /** The slot that holds the key, or the empty one where it belongs. */
  #findSlot(index: Index, key: string, hash: number): number {
    const last = index.positions.length - 1
    let slot = hash & last
    while (index.positions[slot] !== 0) {
      if (index.hashes[slot] === hash) {
        const value = this.#read(index, slot)
        if (value !== undefined && this.#packing.keyOf(value) === key) return slot
      }
      slot = (slot + 1) & last
    }
    return slot
  }

  #read(index: Index, slot: number): V | undefined {
    const position = index.positions[slot] as number
    return position === 0 ? undefined : this.#packing.unpack(this.#log.read(position - 1))
  }

  #rewritten(): PackedMap<V> {
    const log = new TextLog()
    const index = copyIndex(this.#index)
    for (const [slot, position] of index.positions.entries()) {
      if (position !== 0) index.positions[slot] = log.append(this.#log.read(position - 1)) + 1
    }
    return new PackedMap(this.#packing, log, index)
  }
}

function createIndex(cells: number): Index {
  return { positions: new Uint32Array(cells), hashes: new Uint32Array(cells), size: 0, liveBytes: 0 }
}

function copyIndex(index: Index): Index {
  return { ...index, positions: index.positions.slice(), hashes: index.hashes.slice() }
}

/** Twice the slots. The hashes say where each entry goes, so nothing has to be unpacked. */
function grownIndex(index: Index): Index {
  const grown = { ...createIndex(index.positions.length * 2), size: index.size, liveBytes: index.liveBytes }
  const last = grown.positions.length - 1
  for (const [from, position] of index.positions.entries()) {
    if (position === 0) continue
    const hash = index.hashes[from] as number
    let slot = hash & last
    while (grown.positions[slot] !== 0) slot = (slot + 1) & last
    grown.positions[slot] = position
    grown.hashes[slot] = hash
  }
  return grown
}
