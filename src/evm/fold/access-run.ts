import type { KeyRun } from './key-table.ts'

/** Accesses collected before they are looked up. */
export const RUN_MAX = 512

/** In place of a transaction index: the access does not belong to the open block. */
export const NOT_IN_BLOCK = -2

/**
 * Accesses in order of arrival, looked up together. Every step is a separate loop over the run: the processor then fetches many cache
 * lines at once, and each loop is small enough to be optimized.
 */
export class AccessRun implements KeyRun {
  count = 0
  /** Offsets of the payloads in the batch; they are read before the batch is filled again. */
  readonly payloadAt = new Int32Array(RUN_MAX)
  /** Transaction indexes, -1 for the block itself, or NOT_IN_BLOCK. */
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
