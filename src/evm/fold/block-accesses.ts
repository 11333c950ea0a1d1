import { ACCOUNT_KEY_WORDS, isModified, STORAGE_KEY_WORDS } from './access-key.ts'
import { type AccessRun, NOT_IN_BLOCK } from './access-run.ts'
import { ENTRIES_MAX } from './key-order.ts'
import { KeyTable, NOT_FOUND, resize } from './key-table.ts'
import type { SpaceSaving } from './space-saving.ts'

/** Limits of one block. A block beyond them gets no contention figures; real chains stay far below because of their gas limit. */
export const BLOCK_LIMITS = { txns: 2 ** 20, slots: 2 ** 20, accesses: 2 ** 22 } as const

/**
 * Persistent storage touched by one block. A slot is its entry in the table that also counts accesses, so that a key is looked up once;
 * the table may hold slots that the block did not touch. Accesses are a flat log.
 */
export class BlockAccesses {
  readonly slots: KeyTable
  readonly contracts: KeyTable
  /** For each slot touched, its contract. */
  contractOf: Int32Array
  /** For each slot, accesses of any kind, those of the block's prologue and epilogue included. */
  accessCount: Uint32Array
  /** Accesses by transactions in order of arrival: the transaction, and the slot * 2, plus 1 if it was modified. */
  accessTxn = new Uint32Array(8192)
  accessSlot = new Uint32Array(8192)
  accesses = 0
  /** The slots touched, each once: the first `slotsTouched` entries. */
  touchedSlots = new Uint32Array(8192)
  slotsTouched = 0
  txns = 0
  isTooLarge = false
  readonly #slotsSource: SpaceSaving
  /** `trims` of the slot table when the block began. */
  #trims = 0
  /** Slots below this have a valid `contractOf` and `accessCount`. */
  #knownSlots = 0

  constructor(slots: SpaceSaving) {
    this.slots = slots.table
    this.#slotsSource = slots
    this.contracts = new KeyTable({ words: ACCOUNT_KEY_WORDS, entriesMax: ENTRIES_MAX, entries: 512 })
    this.contractOf = new Int32Array(this.slots.capacity).fill(NOT_FOUND)
    this.accessCount = new Uint32Array(this.slots.capacity)
  }

  begin(txns: number): void {
    this.accessCount.fill(0, 0, this.#knownSlots)
    if (this.#trims !== this.#slotsSource.trims) this.#forgetSlots()
    this.accesses = 0
    this.txns = txns
    this.slotsTouched = 0
    this.isTooLarge = txns > BLOCK_LIMITS.txns
  }

  /** Adds the accesses of a run that belong to the block. Their slots are already in the table. */
  add(run: AccessRun): void {
    // Slots that were renumbered during a block can no longer be identified.
    if (this.#trims !== this.#slotsSource.trims) this.isTooLarge = true
    if (this.isTooLarge) return
    this.#reserve(run.count)
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

  /** Grows the arrays for a run of `count` accesses. */
  #reserve(count: number): void {
    this.#reserveSlots(this.slots.size)
    if (this.accesses + count > this.accessTxn.length) {
      const length = this.accessTxn.length * 2
      this.accessTxn = resize(this.accessTxn, new Uint32Array(length))
      this.accessSlot = resize(this.accessSlot, new Uint32Array(length))
    }
    if (this.slotsTouched + count > this.touchedSlots.length)
      this.touchedSlots = resize(this.touchedSlots, new Uint32Array(this.touchedSlots.length * 2))
  }

  #reserveSlots(count: number): void {
    this.#knownSlots = count
    if (count <= this.contractOf.length) return
    const { capacity } = this.slots
    const known = this.contractOf.length
    this.contractOf = resize(this.contractOf, new Int32Array(capacity)).fill(NOT_FOUND, known)
    this.accessCount = resize(this.accessCount, new Uint32Array(capacity))
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

/** Transactions arrive interleaved; a counting sort orders them by index. */
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

/** Distinct transactions per slot and per contract of a block. */
export type BlockTouches = {
  /** For each slot, transactions that touched it. */
  slotTxns: Uint32Array
  /** For each slot, whether a transaction wrote it. */
  slotHasWriter: Uint8Array
  /** For each contract, transactions that touched its storage. */
  contractTxns: Uint32Array
  /** The contracts of transaction t are `contracts[starts[t]]` to `contracts[starts[t + 1] - 1]`. */
  contractsOfTxn: { starts: Uint32Array; contracts: Uint32Array }
}

export function countTouches(block: BlockAccesses, { starts, slots }: GroupedAccesses): BlockTouches {
  const slotTxns = new Uint32Array(block.slots.size)
  const slotHasWriter = new Uint8Array(block.slots.size)
  const contractTxns = new Uint32Array(block.contracts.size)
  // The last transaction seen + 1: a second access of the same transaction is not counted.
  const slotSeen = new Uint32Array(block.slots.size)
  const contractSeen = new Uint32Array(block.contracts.size)
  const contractStarts = new Uint32Array(block.txns + 1)
  const contracts = new Uint32Array(slots.length)
  let touched = 0
  for (let txn = 0; txn < block.txns; txn++) {
    const end = starts[txn + 1] as number
    for (let at = starts[txn] as number; at < end; at++) {
      const slot = (slots[at] as number) >>> 1
      if (((slots[at] as number) & 1) === 1) slotHasWriter[slot] = 1
      if (slotSeen[slot] === txn + 1) continue
      slotSeen[slot] = txn + 1
      slotTxns[slot] = (slotTxns[slot] as number) + 1
      const contract = block.contractOf[slot] as number
      if (contractSeen[contract] === txn + 1) continue
      contractSeen[contract] = txn + 1
      contractTxns[contract] = (contractTxns[contract] as number) + 1
      contracts[touched++] = contract
    }
    contractStarts[txn + 1] = touched
  }
  return { slotTxns, slotHasWriter, contractTxns, contractsOfTxn: { starts: contractStarts, contracts } }
}
