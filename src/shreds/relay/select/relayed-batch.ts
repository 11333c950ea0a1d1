import { BATCH_PACKETS } from '../../../platform/udp/port.ts'
import type { ShredHead } from '../../../solana/shred/shred.ts'

/** The packets of one received batch that are relayed. */
export type RelayedBatch = {
  /** Cells of the packet arena: data shreds first, then coding shreds. */
  readonly order: Uint16Array
  data: number
  coding: number
  /** The distinct slots of the packets. */
  readonly slots: Float64Array
  slotCount: number
  duplicates: number
}

/** Builds one batch after the other in the same memory. */
export type BatchBuilder = {
  begin(): void
  add(cell: number, head: ShredHead): void
  addDuplicate(): void
  /** Valid until the next `begin`. */
  end(): RelayedBatch
}

export function createBatchBuilder(): BatchBuilder {
  const codingCells = new Uint16Array(BATCH_PACKETS)
  const batch: RelayedBatch = {
    order: new Uint16Array(BATCH_PACKETS),
    data: 0,
    coding: 0,
    slots: new Float64Array(BATCH_PACKETS),
    slotCount: 0,
    duplicates: 0,
  }

  function addSlot(slot: number): void {
    for (let i = 0; i < batch.slotCount; i++) if (batch.slots[i] === slot) return
    batch.slots[batch.slotCount++] = slot
  }

  return {
    begin() {
      batch.data = 0
      batch.coding = 0
      batch.slotCount = 0
      batch.duplicates = 0
    },
    add(cell, { slot, layout }) {
      addSlot(slot)
      if (layout.kind === 'data') batch.order[batch.data++] = cell
      else codingCells[batch.coding++] = cell
    },
    addDuplicate() {
      batch.duplicates += 1
    },
    end() {
      for (let i = 0; i < batch.coding; i++) batch.order[batch.data + i] = codingCells[i] as number
      return batch
    },
  }
}
