import { SlotStatus } from '../../solana/gen/geyser_pb.ts'
import { writer } from './scratch.ts'

export type SlotStage = keyof typeof SLOT_STATUS

/** The three statuses of a commitment level are sent to every stream; the others only on request. */
const SLOT_STATUS = {
  processed: SlotStatus.SLOT_PROCESSED,
  confirmed: SlotStatus.SLOT_CONFIRMED,
  finalized: SlotStatus.SLOT_FINALIZED,
  firstShredReceived: SlotStatus.SLOT_FIRST_SHRED_RECEIVED,
  completed: SlotStatus.SLOT_COMPLETED,
  createdBank: SlotStatus.SLOT_CREATED_BANK,
} as const

export class SlotUpdate {
  readonly kind = 'slot'
  readonly stage: SlotStage
  readonly #body: Uint8Array

  constructor(slot: { slot: number; parentSlot: number }, stage: SlotStage, createdAt: Uint8Array) {
    this.stage = stage
    writer.message(3, () => {
      writer.uint(1, slot.slot)
      writer.presentUint(2, slot.parentSlot)
      writer.uint(3, SLOT_STATUS[stage])
    })
    writer.raw(createdAt)
    // A copy: the log keeps these for thousands of slots, and each view would keep a slab with the slot's transactions.
    this.#body = new Uint8Array(writer.take())
  }

  body(): Uint8Array {
    return this.#body
  }
}
