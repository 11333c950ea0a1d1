import { type AppendFile, openAppendFile } from '../../platform/files/append.ts'
import { AUDIT_LINE_BYTES_MAX, type AuditHead, chainsOn, isUnfinished } from './line.ts'

/**
 * The audit chain as a file beside the store: JSON lines that a person, a backup or a log shipper can read, and a second witness should somebody
 * rewrite the database.
 *
 * A new line is written and on the disk before its change is committed, but its newline only after the commit. The newline is therefore the sign of
 * a committed change: a line without one beyond the recorded end belongs to a writer that was killed and is cut off by the next; a line *with* one
 * that the store does not know is a change the store has lost.
 */

/** How far a file goes: the number of its last line, and its size with that line's newline. */
export type MirrorPosition = { readonly seq: number; readonly bytes: number }

export const MIRROR_START: MirrorPosition = { seq: 0, bytes: 0 }

/** The chain as the store has it. */
export type Chain = {
  /** The last committed line. */
  readonly head: AuditHead
  /** Lines from a number on; inside a change also the new one. */
  lines(fromSeq: number): AsyncIterable<string>
}

/** What stands in the file beyond the recorded end. `position` includes lines there that are also in the store. */
export type Surplus = { readonly position: MirrorPosition } & (
  | { readonly kind: 'none' | 'unfinished' | 'foreign' }
  | { readonly kind: 'lost'; readonly seq: number }
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
        if (chainsOn(bytes, chain.head)) return { kind: 'lost', position, seq: chain.head.seq + 1 }
        return { kind: 'foreign', position }
      }
      const expected = Buffer.from((await stored.next()).value ?? '')
      if (!ended && expected.subarray(0, bytes.length).equals(bytes)) return { kind: 'unfinished', position }
      if (!ended || !expected.equals(bytes)) return { kind: 'foreign', position }
      position = { seq: position.seq + 1, bytes: at + bytes.length + 1 }
    }
    return { kind: 'none', position }
  } finally {
    await stored.return?.()
  }
}

/**
 * Brings the file up to the last line of the chain, which is not committed yet, and onto the disk. Remains of an interrupted writer are cut off. A
 * file that was shortened or written to by somebody else is carried on as it is, so that the break stays visible to `audit verify` and an operator
 * can still revoke. A file that is gone begins with line 1 again.
 */
export async function extendMirror(
  path: string,
  recorded: MirrorPosition,
  chain: Chain,
): Promise<MirrorPosition | 'lost'> {
  await using file = await openAppendFile(path, 'write')
  const { kind, position } = await inspectSurplus(file, recorded, chain)
  if (kind === 'lost') return 'lost'
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
 * Sets the newline of a line whose change is committed. When that fails the change stands all the same, and the next writer sets it. Another writer
 * may do so at this moment too: both write the same byte to the same place.
 */
export async function confirmMirror(path: string, { bytes }: MirrorPosition): Promise<void> {
  await using file = await openAppendFile(path, 'write')
  if ((await file.size()) === bytes - 1) await file.writeAt(bytes - 1, '\n')
}
