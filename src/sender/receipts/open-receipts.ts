import type { Clock } from '../../core/clock.ts'
import type { AppendFile } from '../../platform/files/append.ts'
import { type Journal, type JournalEntry, openJournal, readJournal } from './journal.ts'
import { DEDUP_MS } from './known-signatures.ts'
import type { Receipt } from './receipt.ts'
import { createReceipts, type Receipts, type ReceiptsOptions } from './receipts.ts'
import { restoreReceipts } from './restore.ts'

export type OpenReceiptsDeps = {
  readonly journalFiles: readonly [AppendFile, AppendFile]
  readonly clock: Clock
  /** As those of `createReceipts`; the journal has recorded the state before `onSettled`. */
  onSettled(receipt: Receipt): void
  onConfirmed(receipt: Receipt): void
  onJournalFailure(error: unknown): void
  onJournalRecovery(): void
}

export type RecordedReceipts = Disposable & {
  readonly receipts: Receipts
  readonly journal: Journal
  /** What the journal contained at the start, but for lines of the future. */
  readonly entries: readonly JournalEntry[]
  /** Receipts whose transactions were in flight at the last stop. */
  readonly unknown: number
}

/** A receipt is kept for 10 minutes after its transaction is settled. */
const KEEP_MS = 600_000

/** The receipts with the journal that records them, restored from what it contains. */
export async function openReceipts(
  limits: Omit<ReceiptsOptions, 'keepMs'>,
  deps: OpenReceiptsDeps,
): Promise<RecordedReceipts> {
  const { journalFiles: files, clock } = deps
  using opening = new DisposableStack()
  let isRestoring = true
  const receipts = opening.use(
    createReceipts(
      { ...limits, keepMs: KEEP_MS },
      {
        clock,
        onSettled(receipt) {
          journal.recordSettled(receipt)
          deps.onSettled(receipt)
        },
        onConfirmed(receipt) {
          // One that does not fit is among the entries.
          if (!isRestoring) deps.onConfirmed(receipt)
        },
        onReverted: (receipt) => journal.recordReverted(receipt),
      },
    ),
  )
  // Also those whose receipts no longer fit: their signatures stay known.
  const nowMs = clock.nowMs()
  const times = { keptFromMs: nowMs - DEDUP_MS, untilMs: nowMs + KEEP_MS }
  const found = await readJournal(files, limits.receiptsMax, times)
  const journal = await openJournal({
    files,
    found,
    clock,
    *unsettled() {
      for (const receipt of receipts.watched) if (receipt.job !== undefined) yield receipt
    },
    onFailure: (error) => deps.onJournalFailure(error),
    onRecovery: () => deps.onJournalRecovery(),
  })
  const unknown = restoreReceipts(found.entries, receipts, { clock, keepMs: KEEP_MS })
  isRestoring = false
  const opened = opening.move()
  return { receipts, journal, entries: found.entries, unknown, [Symbol.dispose]: () => opened.dispose() }
}
