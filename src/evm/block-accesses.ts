import { ACCOUNT_KEY_WORDS, KeyHasher, STORAGE_KEY_WORDS } from './access-key.ts'
import { KeyTable, NOT_FOUND, resize } from './key-table.ts'

/** Bounds of one block. A block beyond them gets no contention figures; the gas limit of real chains keeps far below. */
export const BLOCK_LIMITS = { txns: 2 ** 20, slots: 2 ** 20, accesses: 2 ** 22 } as const

/** Persistent storage touched by one block, in numbers: slots and contracts are entries of tables, accesses a flat log. */
export class BlockAccesses {
  readonly slots = new KeyTable({ words: STORAGE_KEY_WORDS, entriesMax: BLOCK_LIMITS.slots, entries: 4096 })
  readonly contracts = new KeyTable({ words: ACCOUNT_KEY_WORDS, entriesMax: BLOCK_LIMITS.slots, entries: 512 })
  /** For each slot, its contract. */
  contractOf = new Int32Array(this.slots.room)
  /** For each slot, accesses of any kind, those of the block's prologue and epilogue included. */
  accessCount = new Uint32Array(this.slots.room)
  /** Accesses by transactions, in order of arrival: the transaction, and the slot doubled plus one if it was modified. */
  accessTxn = new Uint32Array(8192)
  accessSlot = new Uint32Array(8192)
  accesses = 0
  txns = 0
  isTooLarge = false
  readonly #contractHasher: KeyHasher

  constructor(seed: number) {
    this.#contractHasher = new KeyHasher(ACCOUNT_KEY_WORDS, seed)
  }

  begin(txns: number): void {
    this.slots.clear()
    this.contracts.clear()
    this.accesses = 0
    this.txns = txns
    this.isTooLarge = txns > BLOCK_LIMITS.txns
  }

  /** `txn` is -1 for accesses of the block itself. */
  add(key: Uint32Array, hash: number, txn: number, isModified: boolean): void {
    let slot = this.slots.find(key, hash)
    if (slot === NOT_FOUND) slot = this.#addSlot(key, hash)
    if (slot === NOT_FOUND || this.accesses === BLOCK_LIMITS.accesses) {
      this.isTooLarge = true
      return
    }
    this.accessCount[slot] = (this.accessCount[slot] as number) + 1
    if (txn < 0) return
    if (this.accesses === this.accessTxn.length) this.#growLog()
    this.accessTxn[this.accesses] = txn
    this.accessSlot[this.accesses] = slot * 2 + (isModified ? 1 : 0)
    this.accesses += 1
  }

  #addSlot(key: Uint32Array, hash: number): number {
    const slot = this.slots.add(key, hash)
    if (slot === NOT_FOUND) return NOT_FOUND
    if (slot >= this.contractOf.length) {
      this.contractOf = resize(this.contractOf, new Int32Array(this.slots.room))
      this.accessCount = resize(this.accessCount, new Uint32Array(this.slots.room))
    }
    const contractHash = this.#contractHasher.hash(key)
    const known = this.contracts.find(key, contractHash)
    this.contractOf[slot] = known === NOT_FOUND ? this.contracts.add(key, contractHash) : known
    this.accessCount[slot] = 0
    return slot
  }

  #growLog(): void {
    const room = this.accessTxn.length * 2
    this.accessTxn = resize(this.accessTxn, new Uint32Array(room))
    this.accessSlot = resize(this.accessSlot, new Uint32Array(room))
  }
}

/** Accesses by transaction: those of transaction t are `slots[starts[t]]` to `slots[starts[t + 1] - 1]`. */
export type GroupedAccesses = { starts: Uint32Array; slots: Uint32Array }

/** Transactions arrive interleaved; a counting sort puts them in index order. */
export function groupByTxn({ txns, accesses, accessTxn, accessSlot }: BlockAccesses): GroupedAccesses {
  const starts = new Uint32Array(txns + 1)
  for (let at = 0; at < accesses; at++)
    starts[(accessTxn[at] as number) + 1] = (starts[(accessTxn[at] as number) + 1] as number) + 1
  for (let txn = 0; txn < txns; txn++) starts[txn + 1] = (starts[txn + 1] as number) + (starts[txn] as number)
  const next = starts.slice()
  const slots = new Uint32Array(accesses)
  for (let at = 0; at < accesses; at++) {
    const txn = accessTxn[at] as number
    const place = next[txn] as number
    next[txn] = place + 1
    slots[place] = accessSlot[at] as number
  }
  return { starts, slots }
}
