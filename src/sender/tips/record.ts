import type { JournalEntry } from '../receipts/journal.ts'
import type { Receipt } from '../receipts/receipt.ts'
import type { TipOutcome } from './counter.ts'
import { saturatedLamports } from './lamports.ts'
import type { TipLedger } from './ledger.ts'

/** Records what became of a receipt. */
export function recordReceipt(
  ledger: TipLedger | undefined,
  { signature, tip, feePayer }: Receipt,
  outcome: TipOutcome,
  atMs: number,
): void {
  if (tip === undefined) return
  const { account, lamports } = tip
  ledger?.record({ outcome, signature, account, payer: feePayer ?? '', lamports: saturatedLamports(lamports), atMs })
}

const OUTCOMES: Readonly<Record<JournalEntry['state'], TipOutcome>> = {
  accepted: 'accepted',
  landed: 'landed',
  failed: 'failed',
  expired: 'expired',
  ended: 'expired',
}

/**
 * Records the journal of an earlier process again, as far back as the ledger may not have it. What became of a transaction that is still followed is
 * recorded later: its block may not have been confirmed when the process ended. The newest first: the ledger holds a limited number, and is more likely to have
 * counted the older ones.
 */
export function recordFound(
  ledger: TipLedger | undefined,
  entries: readonly JournalEntry[],
  isFollowed: (signature: string) => boolean,
): void {
  if (ledger === undefined) return
  for (const { signature, state, atMs, tip } of entries.toReversed()) {
    if (tip === undefined || !ledger.isReadBack(atMs)) continue
    const { account, payer, lamports } = tip
    const outcome = isFollowed(signature) ? 'accepted' : OUTCOMES[state]
    ledger.record({ outcome, signature, account, payer, lamports: saturatedLamports(lamports), atMs })
  }
}
