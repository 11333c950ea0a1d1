import { setBounded } from '../../core/bounded-map.ts'

/** A bank as a node names it: its id means nothing on another connection, which may lead to another node. */
export type BankOfNode = { readonly connection: number; readonly id: bigint }

type Slot = {
  /** By the bank's id, of the blocks that were received. */
  readonly blockhashes: Map<bigint, string>
  readonly dead: Set<bigint>
  final: bigint | undefined
  /** As a node returned it. */
  finalBlockhash: string | undefined
}

/** Far more than lie between a block and its finalization. */
const SLOTS_MAX = 512
/** A leader makes two or three banks of a slot; a node that names more is not followed further. */
const BANKS_PER_SLOT_MAX = 16

/**
 * What the node of the current connection reported about the banks of recent slots. Slot updates name a bank only by its id; a block has the id and the
 * blockhash, by which banks are compared with blocks from any other source.
 */
export class FinalBanks {
  readonly #slots = new Map<number, Slot>()
  #connection: number | undefined

  /** Whether the node names banks at all: one of the old consensus has one bank for each slot and sends no ids. */
  get areNamed(): boolean {
    return this.#connection !== undefined
  }

  received(slot: number, blockhash: string, bank: BankOfNode): void {
    const { blockhashes } = this.#at(slot, bank)
    if (blockhashes.size < BANKS_PER_SLOT_MAX) blockhashes.set(bank.id, blockhash)
  }

  finalized(slot: number, bank: BankOfNode): void {
    this.#at(slot, bank).final = bank.id
  }

  died(slot: number, bank: BankOfNode): void {
    const { dead } = this.#at(slot, bank)
    if (dead.size < BANKS_PER_SLOT_MAX) dead.add(bank.id)
  }

  /** A node returned this block as the finalized one of its slot. */
  fetchedFinal(slot: number, blockhash: string): void {
    const known = this.#slots.get(slot)
    if (known !== undefined) known.finalBlockhash = blockhash
  }

  /** Whether this bank died, or another one of its slot was finalized. */
  hasLost(slot: number, bank: BankOfNode): boolean {
    const { dead, final } = this.#at(slot, bank)
    return final === undefined ? dead.has(bank.id) : final !== bank.id
  }

  blockhashOf(slot: number, bank: BankOfNode): string | undefined {
    return this.#at(slot, bank).blockhashes.get(bank.id)
  }

  /** The blockhash of the slot's final bank, where its block was received. */
  finalBlockhash(slot: number): string | undefined {
    const { final, finalBlockhash, blockhashes } = this.#slots.get(slot) ?? {}
    return finalBlockhash ?? (final === undefined ? undefined : blockhashes?.get(final))
  }

  /** The blockhashes of received blocks that another bank of their slot was finalized instead of. */
  lostBlockhashes(slot: number): readonly string[] {
    const { blockhashes, final } = this.#slots.get(slot) ?? {}
    if (blockhashes === undefined || final === undefined) return []
    const finalBlockhash = this.finalBlockhash(slot)
    return [...blockhashes.values()].filter((blockhash) => blockhash !== finalBlockhash)
  }

  #at(slot: number, { connection }: BankOfNode): Slot {
    if (connection !== this.#connection) this.#slots.clear()
    this.#connection = connection
    let known = this.#slots.get(slot)
    if (known === undefined) {
      known = { blockhashes: new Map(), dead: new Set(), final: undefined, finalBlockhash: undefined }
      setBounded(this.#slots, slot, known, SLOTS_MAX)
    }
    return known
  }
}
