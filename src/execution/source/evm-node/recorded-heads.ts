import { setBounded } from '../../../core/bounded-map.ts'
import type { Hex } from '../../../evm/hex.ts'
import type { BlockHead } from './client.ts'

/**
 * The finalized block of some chains is thousands of blocks behind the head: 20 minutes are 4,800 blocks of 250 ms. Above this number the
 * oldest heads are dropped, and those blocks do not become final.
 */
export const HEADS_MAX = 8192

/** The recorded blocks that are not final yet. */
export class RecordedHeads {
  /** In order of recording. */
  readonly #heads = new Map<Hex, BlockHead>()

  add(head: BlockHead): void {
    setBounded(this.#heads, head.hash, head, HEADS_MAX)
  }

  remove({ hash }: BlockHead): void {
    this.#heads.delete(hash)
  }

  /**
   * The block with this hash and its ancestors above a number, oldest first; empty where it was not recorded. It ends where blocks were
   * skipped: those before may be of another branch.
   */
  branchOf(hash: Hex, aboveNumber: number): BlockHead[] {
    const branch: BlockHead[] = []
    let head = this.#heads.get(hash)
    while (head !== undefined && head.number > aboveNumber) {
      branch.push(head)
      head = this.#heads.get(head.parentHash)
    }
    return branch.toReversed()
  }

  /** Removes the blocks up to this number. */
  removeUpTo(number: number): void {
    for (const head of this.#heads.values()) if (head.number <= number) this.#heads.delete(head.hash)
  }
}
