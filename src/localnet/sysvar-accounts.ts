import {
  CLOCK_SYSVAR,
  EPOCH_SCHEDULE_SYSVAR,
  RECENT_BLOCKHASHES_SYSVAR,
  SLOT_HASHES_SYSVAR,
  SLOT_HISTORY_SYSVAR,
} from './addresses.ts'
import type { Head } from './bank.ts'
import type { BlockhashQueue } from './blockhash-queue.ts'
import type { Account } from './model.ts'
import {
  encodeClock,
  encodeEpochSchedule,
  encodeRecentBlockhashes,
  encodeSlotHashes,
  RECENT_BLOCKHASHES_MAX,
  type SlotHash,
  slotHistoryAccount,
  sysvarAccount,
} from './sysvars.ts'

/** The sysvars that change with every slot, as the frozen block `head` left them. `slotHashes` begins with that block's own, which its sysvar does not have yet. */
export function headSysvars(
  head: Head,
  chain: {
    readonly slotHashes: readonly SlotHash[]
    readonly blockhashes: BlockhashQueue
    readonly slotsPerEpoch: number
  },
): [string, Account][] {
  const { slotsPerEpoch } = chain
  const clock = {
    slot: head.slot,
    epoch: Math.floor(head.slot / slotsPerEpoch),
    epochStartTimestamp: head.epochStartTimestamp,
    unixTimestamp: head.time,
  }
  const recent = chain.blockhashes.newest(RECENT_BLOCKHASHES_MAX)
  return [
    [CLOCK_SYSVAR, sysvarAccount(encodeClock(clock))],
    [EPOCH_SCHEDULE_SYSVAR, sysvarAccount(encodeEpochSchedule(slotsPerEpoch))],
    [SLOT_HASHES_SYSVAR, sysvarAccount(encodeSlotHashes(chain.slotHashes.slice(1)))],
    [RECENT_BLOCKHASHES_SYSVAR, sysvarAccount(encodeRecentBlockhashes(recent))],
    [SLOT_HISTORY_SYSVAR, slotHistoryAccount(head.slot)],
  ]
}
