import { type AppendFile, openAppendFile } from '../../platform/files/append.ts'
import { AUDIT_LINE_BYTES_MAX, type AuditHead, chainsOn, hashLine, isUnfinished, readLink } from './line.ts'

/**
 * The audit chain as a file beside the store: JSON lines for people, backups and log shippers, and independent evidence if the database is
 * rewritten.
 *
 * A new line is synced to disk before its change is committed, its newline only after the commit. The newline therefore marks a committed change: a
 * line without one beyond the recorded end belongs to a writer that was killed, and the next writer removes it; a line with one that the store does
 * not have is a change that the store has lost.
 */

/** The end of a file: the number of its last line, and its size including that line's newline. */
export type MirrorPosition = { readonly seq: number; readonly bytes: number }

export const MIRROR_START: MirrorPosition = { seq: 0, bytes: 0 }

/** The chain in the store. */
export type Chain = {
  /** The last committed line. */
  readonly head: AuditHead
  /** Lines from this number on; within a change also the new one. */
  lines(fromSeq: number): AsyncIterable<string>
}

/** What the file contains beyond the recorded end. `position` includes further lines that are also in the store. */
export type Surplus = { readonly position: MirrorPosition } & (
  | { readonly kind: 'none' | 'unfinished' | 'foreign' }
  /** The number of the first line that the store does not have, and the hash of its bytes. */
  | { readonly kind: 'lost'; readonly seq: number; readonly hash: string }
)

const NEWLINE = 0x0a
const WRITE_CHARS = 1024 * 1024

export async function inspectSurplus(file: AppendFile, recorded: MirrorPosition, chain: Chain): Promise<Surplus> {
  let position = recorded
  const stored = chain.lines(recorded.seq + 1)[Symbol.asyncIterator]()
  try {
    for await (const { bytes, at, ended } of file.lines(recorded.bytes, AUDIT_LINE_BYTES_MAX)) {
      if (position.seq >= chain.head.seq) {
        if (!ended) return { kind: isUnfinished(bytes, chain.head) ? 'unfinished' : 'foreign', position }
        if (chainsOn(bytes, chain.head)) return lostFrom(position, bytes)
        return { kind: 'foreign', position }
      }
      const expected = Buffer.from((await stored.next()).value ?? '')
      if (!ended || !expected.equals(bytes)) {
        // The store has another line in its place: another machine was the next to commit a change.
        const before = { seq: position.seq, hash: readLink(expected)?.prev ?? '' }
        const isStart = expected.subarray(0, bytes.length).equals(bytes)
        if (!ended) return { kind: isStart || isUnfinished(bytes, before) ? 'unfinished' : 'foreign', position }
        if (chainsOn(bytes, before)) return lostFrom(position, bytes)
        return { kind: 'foreign', position }
      }
      position = { seq: position.seq + 1, bytes: at + bytes.length + 1 }
    }
    return { kind: 'none', position }
  } finally {
    await stored.return?.()
  }
}

function lostFrom(position: MirrorPosition, bytes: Uint8Array): Surplus {
  return { kind: 'lost', position, seq: position.seq + 1, hash: hashLine(bytes) }
}

/**
 * Appends the lines up to the end of the chain, whose last one is not committed yet, and syncs the file. Removes the incomplete line of an
 * interrupted writer. A file that was shortened or changed by another program is continued as it is, so that `audit verify` still finds the break
 * and the operator can still revoke tokens. A missing file starts at line 1 again.
 */
export async function extendMirror(
  path: string,
  recorded: MirrorPosition,
  chain: Chain,
): Promise<MirrorPosition | { readonly lost: number }> {
  await using file = await openAppendFile(path, 'write')
  const surplus = await inspectSurplus(file, recorded, chain)
  const { kind, position } = surplus
  if (kind === 'lost') return { lost: surplus.seq }
  if (kind === 'unfinished') await file.cutTo(position.bytes)

  let at = await file.size()
  let seq = position.seq
  let text = at > 0 && (await file.byteAt(at - 1)) !== NEWLINE ? '\n' : ''
  for await (const line of chain.lines(seq + 1)) {
    text += seq === position.seq ? line : `\n${line}`
    seq += 1
    if (text.length < WRITE_CHARS) continue
    at = await file.writeAt(at, text)
    text = ''
  }
  at = await file.writeAt(at, text)
  await file.sync()
  return { seq, bytes: at + 1 }
}

/**
 * Writes the newline of a line whose change is committed. If that fails, the change stays committed and the next writer adds it. Another writer may
 * do so at the same time: both write the same byte at the same offset.
 */
export async function confirmMirror(path: string, { bytes }: MirrorPosition): Promise<void> {
  await using file = await openAppendFile(path, 'write')
  if ((await file.size()) === bytes - 1) await file.writeAt(bytes - 1, '\n')
}
