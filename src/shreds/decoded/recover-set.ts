import { dataNodeOf } from '../../solana/shred/data-node.ts'
import { type GivenShards, ShardRecovery } from '../../solana/shred/shard-recovery.ts'
import {
  createShredHead,
  FEC_SET_DATA_SHREDS,
  INDEX_MAX,
  LAYOUTS,
  type ShredLayout,
  SIGNATURE_BYTES,
  scanShred,
} from '../../solana/shred/shred.ts'
import { endingOf, type FecSet } from './fec-set.ts'
import { cellAt, type ShredCells } from './shred-cells.ts'

/**
 * Rebuilds the missing data shreds of FEC sets that hold 32 shreds. A rebuilt shred takes the cell of a coding shred: there are as many of these
 * as data shreds are missing. It is used only when all data shreds together lead to the signed root, and obeys every rule that a received one
 * must obey.
 */
export class SetRecovery {
  readonly #cells: ShredCells
  readonly #shards = new ShardRecovery()
  readonly #positions = new Uint8Array(FEC_SET_DATA_SHREDS)
  readonly #at = new Int32Array(FEC_SET_DATA_SHREDS)
  readonly #missing = new Uint8Array(FEC_SET_DATA_SHREDS)
  readonly #head = createShredHead()

  constructor(cells: ShredCells) {
    this.#cells = cells
  }

  /** False when the coding shreds are wrong; the cells of missing data shreds are then free for those that still arrive. */
  recover(set: FecSet, slot: number): boolean {
    const layout = set.isResigned ? LAYOUTS.resignedData : LAYOUTS.data
    const length = layout.chainedRootAt - layout.erasureFrom
    const given: GivenShards = { bytes: this.#cells.bytes, length, positions: this.#positions, at: this.#at }
    const missing = this.#collect(set)
    this.#shards.rebuild(given, this.#missing, missing)
    this.#place(set, missing, length)
    for (let i = 0; i < FEC_SET_DATA_SHREDS; i++) this.#at[i] = cellAt(set.block, set.cells[i] as number)
    const node = dataNodeOf({ bytes: this.#cells.bytes, length, at: this.#at, chainedRoot: set.chainedRoot })
    return set.isDataNode(node) && this.#adopt(set, slot, missing, layout)
  }

  /** Lists the shreds that are held and the data shreds that are missing, and returns how many these are. */
  #collect(set: FecSet): number {
    let given = 0
    let missing = 0
    for (let position = 0; position < 2 * FEC_SET_DATA_SHREDS; position++) {
      const isData = position < FEC_SET_DATA_SHREDS
      if (((isData ? set.data : set.coding) & (1 << position)) !== 0) {
        this.#positions[given] = position
        this.#at[given++] = cellAt(set.block, set.cells[position] as number)
      } else if (isData) this.#missing[missing++] = position
    }
    return missing
  }

  #place(set: FecSet, missing: number, length: number): void {
    let position = FEC_SET_DATA_SHREDS
    for (let i = 0; i < missing; i++) {
      while ((set.coding & (1 << position)) === 0) position += 1
      const cell = set.cells[position++] as number
      set.cells[this.#missing[i] as number] = cell
      this.#cells.bytes.set(this.#shards.shard(i, length), cellAt(set.block, cell))
    }
  }

  /** Checks the headers of the rebuilt shreds, and takes over what they add to the knowledge about the set. */
  #adopt(set: FecSet, slot: number, missing: number, layout: ShredLayout): boolean {
    const head = this.#head
    let { parentOffset, ending } = set
    for (let i = 0; i < missing; i++) {
      const position = this.#missing[i] as number
      // A cell begins with what follows the signature, and the rules concern nothing before that.
      const at = cellAt(set.block, set.cells[position] as number) - SIGNATURE_BYTES
      if (scanShred(this.#cells.bytes, at, layout.length, head, INDEX_MAX) !== undefined) return false
      if (parentOffset === -1) parentOffset = head.parentOffset
      const isOfSet =
        head.layout === layout &&
        head.slot === slot &&
        head.version === set.version &&
        head.index === set.index * FEC_SET_DATA_SHREDS + position &&
        head.parentOffset === parentOffset
      if (!isOfSet) return false
      if (position === FEC_SET_DATA_SHREDS - 1) ending = endingOf(head.flags)
    }
    set.parentOffset = parentOffset
    set.ending = ending
    return true
  }
}
