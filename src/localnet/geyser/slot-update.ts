import { SlotStatus } from '../../solana/gen/geyser_pb.ts'
import type { BankId } from '../chain/model.ts'
import { writeBankId, writer } from './scratch.ts'

export type SlotStage = keyof typeof SLOT_STATUS

/** The three statuses of a commitment level are sent to every stream; the others only on request. */
const SLOT_STATUS = {
  processed: SlotStatus.SLOT_PROCESSED,
  confirmed: SlotStatus.SLOT_CONFIRMED,
  finalized: SlotStatus.SLOT_FINALIZED,
  firstShredReceived: SlotStatus.SLOT_FIRST_SHRED_RECEIVED,
  completed: SlotStatus.SLOT_COMPLETED,
  createdBank: SlotStatus.SLOT_CREATED_BANK,
  dead: SlotStatus.SLOT_DEAD,
} as const

/** Why a candidate bank of a slot is dead: another one of the slot is confirmed. */
const DEAD_ERROR = 'bank replaced'

export class SlotUpdate {
  readonly kind = 'slot'
  readonly stage: SlotStage
  readonly #body: Uint8Array

  constructor(
    slot: { readonly slot: number; readonly parentSlot: number; readonly bankId?: BankId },
    stage: SlotStage,
    createdAt: Uint8Array,
  ) {
    this.stage = stage
    writer.message(3, () => {
      writer.uint(1, slot.slot)
      writer.presentUint(2, slot.parentSlot)
      writer.uint(3, SLOT_STATUS[stage])
      if (stage === 'dead') writer.presentText(4, DEAD_ERROR)
      writeBankId(5, slot.bankId)
    })
    writer.raw(createdAt)
    // A copy: the log keeps these for thousands of slots, and each view would keep a slab with the slot's transactions.
    this.#body = new Uint8Array(writer.take())
  }

  body(): Uint8Array {
    return this.#body
  }
}
