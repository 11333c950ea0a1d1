import type { Hex } from '../../../evm/hex.ts'
import { wordOf } from './values.ts'

export type SlotAccess = { key: Hex; start: bigint; end: bigint }

export type AccountAccess = {
  address: Hex
  balance: bigint
  balanceAfter: bigint | undefined
  nonce: bigint
  nonceAfter: bigint | undefined
  storage: SlotAccess[]
  transient: SlotAccess[]
}

/** The accesses of one transaction, in order of first access. */
export class TxnAccesses {
  readonly #accounts = new Map<Hex, Draft>()
  /** Writes in order, each with the value before it. */
  readonly #undo: { slot: Values; end: bigint }[] = []

  account(address: Hex): Draft {
    const known = this.#accounts.get(address)
    if (known !== undefined) return known
    const draft: Draft = {
      balance: 0n,
      balanceAfter: undefined,
      nonce: 0n,
      nonceAfter: undefined,
      storage: new Map(),
      transient: new Map(),
    }
    this.#accounts.set(address, draft)
    return draft
  }

  /** A slot was read: the first value read is that before the transaction. */
  read(address: Hex, key: bigint, value: bigint, kind: 'storage' | 'transient' = 'storage'): void {
    const slots = this.account(address)[kind]
    if (!slots.has(key)) slots.set(key, { start: value, end: value })
  }

  /** A slot was written. Where its earlier value is unknown, it counts as changed. */
  write(address: Hex, key: bigint, value: bigint, kind: 'storage' | 'transient' = 'storage'): void {
    const slots = this.account(address)[kind]
    const start = value === 0n ? 1n : 0n
    const slot = slots.get(key) ?? { start, end: start }
    slots.set(key, slot)
    this.#undo.push({ slot, end: slot.end })
    slot.end = value
  }

  /** A point to roll back to. */
  mark(): number {
    return this.#undo.length
  }

  /** A call failed: undoes the writes since the mark. The accesses remain recorded. */
  rollBack(mark: number): void {
    while (this.#undo.length > mark) {
      const { slot, end } = this.#undo.pop() as { slot: Values; end: bigint }
      slot.end = end
    }
  }

  list(): AccountAccess[] {
    return [...this.#accounts].map(([address, { storage, transient, ...rest }]) => ({
      address,
      ...rest,
      storage: slotsOf(storage),
      transient: slotsOf(transient),
    }))
  }
}

type Values = { start: bigint; end: bigint }
type Draft = Omit<AccountAccess, 'address' | 'storage' | 'transient'> & {
  storage: Map<bigint, Values>
  transient: Map<bigint, Values>
}

function slotsOf(slots: ReadonlyMap<bigint, Values>): SlotAccess[] {
  return [...slots].map(([key, values]) => ({ key: wordOf(key), ...values }))
}
