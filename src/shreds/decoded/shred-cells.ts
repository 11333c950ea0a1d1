import { copyBytes } from '../../core/copy-bytes.ts'
import {
  DATA_HEADER_BYTES,
  FEC_SET_DATA_SHREDS,
  LAYOUTS,
  type ShredHead,
  SIGNATURE_BYTES,
  SIZE_AT,
} from '../../solana/shred/shred.ts'

/**
 * Memory for the erasure shards of FEC sets. A FEC set needs 32 of its 64 shreds, so its block has 32 cells: each has the part of a shred that the
 * erasure code covers, which for a data shred is everything from the slot's header fields to the payload. The rest is the same in all shreds of
 * the set, or can be computed. Pages that are never used are not touched.
 */
export class ShredCells {
  readonly bytes: Uint8Array
  readonly words: Int32Array
  /** Numbers of free blocks; the last one is used next, so that memory in use stays small. */
  readonly #free: Int32Array
  #freeCount: number
  readonly blocks: number

  constructor(bytesMax: number) {
    this.blocks = Math.floor(bytesMax / FEC_SET_BYTES)
    const memory = new ArrayBuffer(this.blocks * FEC_SET_BYTES)
    this.bytes = new Uint8Array(memory)
    this.words = new Int32Array(memory)
    this.#free = Int32Array.from({ length: this.blocks }, (_, i) => this.blocks - 1 - i)
    this.#freeCount = this.blocks
  }

  /** Blocks in use. */
  get used(): number {
    return this.blocks - this.#freeCount
  }

  /** A free block; -1 when there is none. */
  acquire(): number {
    return this.#freeCount === 0 ? -1 : (this.#free[--this.#freeCount] as number)
  }

  release(block: number): void {
    this.#free[this.#freeCount++] = block
  }

  /** Copies the erasure shard of the packet at `at` into a cell. */
  put(block: number, cell: number, packet: Uint8Array, at: number, { layout }: ShredHead): void {
    const target = cellAt(block, cell)
    copyBytes(packet, at + layout.erasureFrom, at + layout.chainedRootAt, this.bytes, target)
  }
}

/** The longest shard, up to a multiple of four. */
const SHARD_BYTES_MAX = LAYOUTS.data.chainedRootAt - LAYOUTS.data.erasureFrom
const CELL_BYTES = Math.ceil(SHARD_BYTES_MAX / 4) * 4
export const FEC_SET_BYTES: number = CELL_BYTES * FEC_SET_DATA_SHREDS

/** Where a field of a data shred is in its cell, given where it is in the shred. */
function inCell(offset: number): number {
  return offset - SIGNATURE_BYTES
}

export function cellAt(block: number, cell: number): number {
  return block * FEC_SET_BYTES + cell * CELL_BYTES
}

/** Where the data shreds of a complete FEC set are: its block, and in it the cell of each shred. */
export type HeldShreds = { readonly block: number; readonly cells: Uint8Array }

/** Bytes of entries in the data shreds of the set. */
export function payloadBytes({ block, cells }: HeldShreds, memory: ShredCells): number {
  let length = 0
  for (let i = 0; i < FEC_SET_DATA_SHREDS; i++)
    length += sizeAt(memory.bytes, cellAt(block, cells[i] as number)) - DATA_HEADER_BYTES
  return length
}

/** Copies them to `at` and returns where they end. */
export function copyPayloads({ block, cells }: HeldShreds, memory: ShredCells, to: Uint8Array, at: number): number {
  let next = at
  for (let i = 0; i < FEC_SET_DATA_SHREDS; i++) {
    const cell = cellAt(block, cells[i] as number)
    const size = sizeAt(memory.bytes, cell)
    copyBytes(memory.bytes, cell + inCell(DATA_HEADER_BYTES), cell + inCell(size), to, next)
    next += size - DATA_HEADER_BYTES
  }
  return next
}

/** Headers and payload of the data shred in this cell. */
function sizeAt(bytes: Uint8Array, cell: number): number {
  const at = cell + inCell(SIZE_AT)
  return (bytes[at] as number) | ((bytes[at + 1] as number) << 8)
}
