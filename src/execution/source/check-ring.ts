import type { Clock } from '../../core/clock.ts'
import { HEADER_BYTES, readControl } from '../../evm/ring/layout.ts'
import { createRingReader } from '../../evm/ring/reader.ts'
import { delay } from '../../platform/process/clock.ts'
import { openRingFile, type RingFile } from '../../platform/ring-file/reader.ts'

export type RingCheck =
  | { ok: true; seqno: number }
  | { ok: false; reason: 'missing' | 'unreadable' | 'refused' | 'silent'; message: string }

/** A chain has a block every second or less; one without a block for this long has halted. */
const ADVANCE_MS = 3000
const POLL_MS = 100

/** Whether the ring exists, is readable, has a known layout and receives events. */
export async function checkRing(path: string, clock: Clock, advanceMs = ADVANCE_MS): Promise<RingCheck> {
  let file: RingFile | undefined
  try {
    file = openRingFile(path)
  } catch (error) {
    return { ok: false, reason: 'unreadable', message: error instanceof Error ? error.message : String(error) }
  }
  if (file === undefined) return { ok: false, reason: 'missing', message: `there is no file ${path}` }
  try {
    const created = createRingReader(file, 'newest-block')
    if (!created.ok) return { ok: false, reason: 'refused', message: `${path}: ${created.message}` }
    const first = lastSeqno(file)
    for (let waitedMs = 0; waitedMs < advanceMs; waitedMs += POLL_MS) {
      await delay(clock, POLL_MS)
      if (lastSeqno(file) !== first) return { ok: true, seqno: lastSeqno(file) }
    }
    return { ok: false, reason: 'silent', message: `${path} has not moved for ${advanceMs / 1000} s` }
  } finally {
    file.close()
  }
}

function lastSeqno(file: RingFile): number {
  const header = new Uint8Array(HEADER_BYTES)
  file.read(0, header, 0, HEADER_BYTES)
  return readControl(header).lastSeqno
}
