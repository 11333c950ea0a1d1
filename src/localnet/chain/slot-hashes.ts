import { SLOT_HASHES_MAX, type SlotHash } from '../engine/sysvars.ts'

/** The bank hashes of the newest slots: those that the SlotHashes sysvar of any retained block needs. */
export type SlotHashes = {
  push(slot: number, hash: Uint8Array): void
  /** Newest first, of slots before `slot`. */
  before(slot: number, count?: number): SlotHash[]
}

/** Blocks keep their sysvar writes for fewer slots than this. */
const OLDER_SLOTS = 256

export function createSlotHashes(): SlotHashes {
  const newestFirst: SlotHash[] = []
  return {
    push(slot, hash) {
      newestFirst.unshift({ slot, hash })
      newestFirst.splice(SLOT_HASHES_MAX + OLDER_SLOTS)
    },
    before(slot, count = SLOT_HASHES_MAX) {
      const first = newestFirst.findIndex((entry) => entry.slot < slot)
      return first < 0 ? [] : newestFirst.slice(first, first + count)
    },
  }
}
