import type { Clock } from '../../core/clock.ts'
import type { JournalEntry } from './journal.ts'
import { type Receipt, signatureKeyOf, UNREAD_ERROR } from './receipt.ts'
import type { Receipts } from './receipts.ts'

/**
 * Restores receipts from the journal. Those without a final state become `unknown` and are looked up on the chain; returns their number. Those that landed are
 * looked up too: their blocks may not have been confirmed when the process ended.
 */
export function restoreReceipts(
  entries: readonly JournalEntry[],
  receipts: Receipts,
  { clock, keepMs }: { readonly clock: Clock; readonly keepMs: number },
): number {
  const nowMs = clock.nowMs()
  let unknown = 0
  for (const { signature, state, atMs, slot, tip } of entries) {
    // After a clock was set back an entry may lie some minutes in the future; it is treated as new.
    const ageMs = Math.max(0, nowMs - atMs)
    if (ageMs >= keepMs) continue
    const atMonotonicMs = clock.monotonicMs() - ageMs
    const receipt: Receipt = {
      key: signatureKeyOf(signature),
      signature,
      state: state === 'accepted' ? 'unknown' : state === 'failed' ? 'landed' : state,
      acceptedUnixMs: atMs,
      acceptedMonotonicMs: atMonotonicMs,
      settledMonotonicMs: atMonotonicMs,
      address: undefined,
      feePayer: tip?.payer === '' ? undefined : tip?.payer,
      tip: tip && { account: tip.account, lamports: tip.lamports },
      blockhash: undefined,
      wireHash: '',
      job: undefined,
      attempts: [],
      attemptsLeftOut: 0,
      landed:
        slot === undefined
          ? undefined
          : { slot, confirmation: 'processed', error: state === 'failed' ? UNREAD_ERROR : null, unixMs: atMs },
      expiredHeight: undefined,
    }
    receipts.add(receipt)
    if (state === 'accepted') unknown += 1
  }
  return unknown
}
