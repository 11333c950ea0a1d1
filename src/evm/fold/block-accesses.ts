import { ACCOUNT_KEY_WORDS, isModified, STORAGE_KEY_WORDS } from './access-key.ts'
import { type AccessRun, NOT_IN_BLOCK } from './access-run.ts'
import { ENTRIES_MAX } from './key-order.ts'
import { KeyTable, NOT_FOUND, resize } from './key-table.ts'
import type { SpaceSaving } from './space-saving.ts'

/** Bounds of one block. A block beyond them gets no contention figures; the gas limit of real chains keeps far below. */
export const BLOCK_LIMITS = { txns: 2 ** 20, slots: 2 ** 20, accesses: 2 ** 22 } as const

/**
 * Persistent storage touched by one block, in numbers. Slots are entries of the table in which their accesses are counted, so that a
 * key is searched for once; it may hold slots that the block did not touch. Accesses are a flat log.
 */
export class BlockAccesses {
  readonly slots: KeyTable
  readonly contracts: KeyTable
  /** For each slot touched, its contract. */
  contractOf: Int32Array
  /** For each slot, accesses of any kind, those of the block's prologue and epilogue included. */
  accessCount: Uint32Array
  /** Accesses by transactions, in order of arrival: the transaction, and the slot doubled plus one if it was modified. */
  accessTxn = new Uint32Array(8192)
  accessSlot = new Uint32Array(8192)
  accesses = 0
  /** The slots touched, each once: the first `slotsTouched` entries. */
  touchedSlots = new Uint32Array(8192)
  slotsTouched = 0
  txns = 0
  isTooLarge = false
  readonly #slotsSource: SpaceSaving
  /** State of the slots' numbers at the last look. */
  #trims = 0
  /** What is known of slots ends here. */
  #knownSlots = 0

  constructor(slots: SpaceSaving) {
    this.slots = slots.table
    this.#slotsSource = slots
    this.contracts = new KeyTable({ words: ACCOUNT_KEY_WORDS, entriesMax: ENTRIES_MAX, entries: 512 })
    this.contractOf = new Int32Array(this.slots.room).fill(NOT_FOUND)
    this.accessCount = new Uint32Array(this.slots.room)
  }

  begin(txns: number): void {
    this.accessCount.fill(0, 0, this.#knownSlots)
    if (this.#trims !== this.#slotsSource.trims) this.#forgetSlots()
    this.accesses = 0
    this.txns = txns
    this.slotsTouched = 0
    this.isTooLarge = txns > BLOCK_LIMITS.txns
  }

  /** Takes the accesses of a run that are part of the block. Their slots have been entered into the table. */
  add(run: AccessRun): void {
    // Slots that got new numbers in the middle of a block cannot be told apart any more.
    if (this.#trims !== this.#slotsSource.trims) this.isTooLarge = true
    if (this.isTooLarge) return
    this.#makeRoom(run.count)
    const { count, entries, txns, flags } = run
    const { accessCount, accessTxn, accessSlot } = this
    let accesses = this.accesses
    for (let at = 0; at < count; at++) {
      const txn = txns[at] as number
      if (txn === NOT_IN_BLOCK) continue
      const slot = entries[at] as number
      const before = accessCount[slot] as number
      accessCount[slot] = before + 1
      if (before === 0) this.#touch(slot, run.contractHashes[at] as number)
      if (txn < 0) continue
      accessTxn[accesses] = txn
      accessSlot[accesses] = slot * 2 + (isModified(flags[at] as number) ? 1 : 0)
      accesses += 1
    }
    this.accesses = accesses
    this.isTooLarge = accesses > BLOCK_LIMITS.accesses || this.slotsTouched > BLOCK_LIMITS.slots
  }

  #touch(slot: number, contractHash: number): void {
    this.touchedSlots[this.slotsTouched++] = slot
    if (this.contractOf[slot] !== NOT_FOUND) return
    const { keys } = this.slots
    const at = slot * STORAGE_KEY_WORDS
    const known = this.contracts.find(keys, at, contractHash)
    this.contractOf[slot] = known === NOT_FOUND ? this.contracts.add(keys, at, contractHash) : known
  }

  /** For everything that a run of so many accesses may add. */
  #makeRoom(count: number): void {
    this.#knowSlots(this.slots.size)
    if (this.accesses + count > this.accessTxn.length) {
      const room = this.accessTxn.length * 2
      this.accessTxn = resize(this.accessTxn, new Uint32Array(room))
      this.accessSlot = resize(this.accessSlot, new Uint32Array(room))
    }
    if (this.slotsTouched + count > this.touchedSlots.length)
      this.touchedSlots = resize(this.touchedSlots, new Uint32Array(this.touchedSlots.length * 2))
  }

  #knowSlots(count: number): void {
    this.#knownSlots = count
    if (count <= this.contractOf.length) return
    const { room } = this.slots
    const known = this.contractOf.length
    this.contractOf = resize(this.contractOf, new Int32Array(room)).fill(NOT_FOUND, known)
    this.accessCount = resize(this.accessCount, new Uint32Array(room))
  }

  #forgetSlots(): void {
    this.#trims = this.#slotsSource.trims
    this.contractOf.fill(NOT_FOUND, 0, this.#knownSlots)
    this.contracts.clear()
    this.#knownSlots = 0
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
    const position = next[txn] as number
    next[txn] = position + 1
    slots[position] = accessSlot[at] as number
  }
  return { starts, slots }
}
