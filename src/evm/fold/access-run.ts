import type { KeyRun } from './key-table.ts'

/** Accesses gathered before they are looked up. */
export const RUN_MAX = 512

/** In place of the transaction: the open block takes no notice of this access. */
export const NOT_IN_BLOCK = -2

/**
 * Accesses in the order in which they came, gathered and then looked up together. Every step is a loop of its own over the whole run:
 * the processor then waits for many lines of memory at once, and each loop is small enough to be compiled in one piece.
 */
export class AccessRun implements KeyRun {
  count = 0
  /** Where the payloads begin; they are read when the keys are taken, before the batch is filled again. */
  readonly payloadAt = new Int32Array(RUN_MAX)
  /** The transactions: an index, -1 for the block itself, or NOT_IN_BLOCK. */
  readonly txns = new Int32Array(RUN_MAX)
  /** Flags of storage accesses, see `access-key.ts`. */
  readonly flags = new Uint16Array(RUN_MAX)
  readonly keys: Uint32Array
  readonly hashes = new Int32Array(RUN_MAX)
  /** Storage accesses only: hashes of the contracts' addresses. */
  readonly contractHashes = new Int32Array(RUN_MAX)
  readonly entries = new Int32Array(RUN_MAX)

  constructor(keyWords: number) {
    this.keys = new Uint32Array(RUN_MAX * keyWords)
  }

  get isFull(): boolean {
    return this.count === RUN_MAX
  }

  add(payloadAt: number, txn: number): void {
    const at = this.count++
    this.payloadAt[at] = payloadAt
    this.txns[at] = txn
  }
}
