import type { Warning } from '../../contract/stream-events.ts'

export type ResumeWindow = {
  /** 0 and 0 while the buffer is empty. */
  readonly oldestSeq: number
  readonly newestSeq: number
  /** The number the next entry will get. */
  readonly upcomingSeq: number
}

export type Cursor =
  | { ok: true; seq: number }
  | { ok: false; reason: (Warning & { type: 'resume_out_of_window' })['reason'] }

/**
 * Whether everything after a cursor is still there. The cursor just before the oldest entry loses nothing, and that of the newest is a
 * client that missed nothing. Zero is the cursor of a client that saw nothing, and good while there is nothing to see.
 */
export function checkCursor(text: string, { oldestSeq, newestSeq, upcomingSeq }: ResumeWindow): Cursor {
  const seq = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(seq)) return { ok: false, reason: 'invalid' }
  if (newestSeq === 0 && seq === 0) return { ok: true, seq: upcomingSeq - 1 }
  if (seq >= upcomingSeq) return { ok: false, reason: 'ahead' }
  const oldest = newestSeq === 0 ? upcomingSeq : oldestSeq
  return seq < oldest - 1 ? { ok: false, reason: 'too_old' } : { ok: true, seq }
}
