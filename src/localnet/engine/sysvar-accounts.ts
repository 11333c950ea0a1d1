import {
  CLOCK_SYSVAR,
  EPOCH_SCHEDULE_SYSVAR,
  RECENT_BLOCKHASHES_SYSVAR,
  SLOT_HASHES_SYSVAR,
  SLOT_HISTORY_SYSVAR,
} from '../chain/addresses.ts'
import type { Head } from '../chain/bank.ts'
import type { BlockhashQueue } from '../chain/blockhash-queue.ts'
import type { Account } from '../chain/model.ts'
import type { SlotHashes } from './slot-hashes.ts'
import {
  encodeClock,
  encodeEpochSchedule,
  RECENT_BLOCKHASHES_MAX,
  recentBlockhashesAccount,
  slotHashesAccount,
  slotHistoryAccount,
  sysvarAccount,
} from './sysvars.ts'

/** The sysvars that change with every slot, as the frozen block `head` left them. */
export function headSysvars(
  head: Head,
  chain: {
    readonly slotHashes: SlotHashes
    readonly blockhashes: BlockhashQueue
    readonly slotsPerEpoch: number
  },
): [string, Account][] {
  const { slotsPerEpoch, slotHashes, blockhashes } = chain
  const clock = {
    slot: head.slot,
    epoch: Math.floor(head.slot / slotsPerEpoch),
    epochStartTimestamp: head.epochStartTimestamp,
    unixTimestamp: head.time,
  }
  return [
    [CLOCK_SYSVAR, sysvarAccount(encodeClock(clock))],
    [EPOCH_SCHEDULE_SYSVAR, sysvarAccount(encodeEpochSchedule(slotsPerEpoch))],
    [SLOT_HASHES_SYSVAR, slotHashesAccount(() => slotHashes.before(head.slot))],
    [RECENT_BLOCKHASHES_SYSVAR, recentBlockhashesAccount(() => blockhashes.upTo(head.height, RECENT_BLOCKHASHES_MAX))],
    [SLOT_HISTORY_SYSVAR, slotHistoryAccount(head.slot)],
  ]
}
