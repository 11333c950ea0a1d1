import { frameMessage } from '../../platform/grpc/framing.ts'
import { SlotStatus, SubscribeUpdateSchema } from '../../solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../solana/geyser/protobuf.ts'
import { WIRE_BYTES, WIRE_VARINT, WireReader } from '../../solana/geyser/wire-reader.ts'
import { SLOT_UPDATE, UPDATE_FIELDS } from './update-fields.ts'

/** More than the slots that are sent again after a move. */
const SLOTS_MAX = 64
/** Updates without a bank id after which the node counts as one that does not name banks. */
const UNNAMED_MAX = 64
/** A leader makes two or three banks of a slot. */
const BANKS_PER_SLOT_MAX = 16

/** The error of a bank of the previous node. Clients may compare the text. */
export const MOVED_ERROR =
  'the stream moved to another node, which sends the updates of this slot again under the id of its own bank'

/**
 * The banks of which a client has received updates, and that its node has neither finalized nor declared dead. Their ids are local to the node: after a move
 * to another one, a client could not know that no more updates of them follow.
 */
export class SeenBanks {
  readonly #slots = new Map<number, Set<bigint>>()
  #unnamed = 0

  /** False once the node is known not to name banks: then each slot has one, and it is enough to note an update now and then. */
  get mayBeNamed(): boolean {
    return this.#unnamed < UNNAMED_MAX
  }

  /** Reads one SubscribeUpdate that the client gets. */
  note(bytes: Uint8Array, from: number, to: number): void {
    const update = new WireReader(bytes, from, to)
    while (update.next()) {
      const fields = UPDATE_FIELDS[update.field]
      if (fields === undefined || update.wireType !== WIRE_BYTES) continue
      const isSlot = update.field === SLOT_UPDATE.kind
      const content = update.inside()
      let slot: number | undefined
      let bank: bigint | undefined
      let status = 0
      while (content.next()) {
        if (content.wireType !== WIRE_VARINT) continue
        if (content.field === fields.slot) slot = content.value
        else if (content.field === fields.bank) bank = content.wideValue
        else if (isSlot && content.field === SLOT_UPDATE.status) status = content.value
      }
      // No chain has such a slot, and it could not be written again.
      if (slot !== undefined && !Number.isSafeInteger(slot)) return
      if (slot !== undefined && bank !== undefined) this.#seen(slot, bank, isSlot ? status : undefined)
      else this.#unnamed += 1
      return
    }
  }

  /**
   * Forgets all banks, and returns a slot update SLOT_DEAD for each of those from `fromSlot` on, framed, as updates of these filters. Below it nothing is
   * sent again.
   */
  endAll(filters: readonly string[], fromSlot: number): { readonly banks: number; readonly frames: Uint8Array } {
    const frames: Uint8Array[] = []
    for (const [slot, banks] of [...this.#slots].toSorted(([a], [b]) => a - b)) {
      if (slot < fromSlot || filters.length === 0) continue
      for (const bankId of banks) frames.push(frameMessage(deadUpdate(filters, slot, bankId)))
    }
    this.#slots.clear()
    return { banks: frames.length, frames: Buffer.concat(frames) }
  }

  #seen(slot: number, bank: bigint, status: number | undefined): void {
    this.#unnamed = 0
    if (status === SlotStatus.SLOT_FINALIZED) {
      // A final block makes all slots before it final.
      for (const earlier of this.#slots.keys()) if (earlier <= slot) this.#slots.delete(earlier)
      return
    }
    const known = this.#slots.get(slot)
    if (status === SlotStatus.SLOT_DEAD) {
      known?.delete(bank)
      if (known?.size === 0) this.#slots.delete(slot)
    } else if (known === undefined) {
      this.#slots.set(slot, new Set([bank]))
      if (this.#slots.size > SLOTS_MAX) this.#slots.delete(Math.min(...this.#slots.keys()))
    } else if (known.size < BANKS_PER_SLOT_MAX) known.add(bank)
  }
}

function deadUpdate(filters: readonly string[], slot: number, bankId: bigint): Uint8Array {
  const value = { slot: BigInt(slot), status: SlotStatus.SLOT_DEAD, deadError: MOVED_ERROR, bankId }
  return encodeMessage(SubscribeUpdateSchema, { filters: [...filters], updateOneof: { case: 'slot', value } })
}
