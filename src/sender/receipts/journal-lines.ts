import type { AppendFile } from '../../platform/files/append.ts'
import type { ReceiptState } from './receipt.ts'

/** What a line of the journal says: a transaction was accepted, or came to its end. */
export type JournalEntry = {
  readonly signature: string
  readonly atMs: number
  readonly state: Exclude<ReceiptState, 'sent' | 'unknown'> | 'failed'
  readonly slot: number | undefined
}

export type JournalContents = {
  /** The last word on every transaction, oldest first. */
  readonly entries: readonly JournalEntry[]
  /** Where the last whole line of each file ends. */
  readonly ends: readonly [number, number]
  /** How often the files had changed places when each was begun; 0 for the first one ever, and for one that is empty. */
  readonly turns: readonly [number, number]
}

const LINE_BYTES_MAX = 256

/** A torn or foreign line is passed over. */
export async function readJournal(
  files: readonly [AppendFile, AppendFile],
  entriesMax: number,
): Promise<JournalContents> {
  const entries = new Map<string, JournalEntry>()
  const ends: [number, number] = [0, 0]
  const turns: [number, number] = [0, 0]
  for (const [file, position] of [
    [files[0], 0],
    [files[1], 1],
  ] as const) {
    for await (const { bytes, at, ended } of file.lines(0, LINE_BYTES_MAX)) {
      if (!ended) continue
      ends[position] = at + bytes.length + 1
      const line = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
      if (at === 0) turns[position] = parseTurn(line)
      const entry = parseLine(line)
      if (entry === undefined) continue
      const before = entries.get(entry.signature)
      // A transaction repeated in the next file's head was accepted, not finished anew.
      if (entry.state === 'accepted' && before !== undefined && before.atMs >= entry.atMs) continue
      entries.delete(entry.signature)
      entries.set(entry.signature, entry)
      if (entries.size > entriesMax * 2) entries.delete(entries.keys().next().value as string)
    }
  }
  return { entries: [...entries.values()].sort((a, b) => a.atMs - b.atMs).slice(-entriesMax), ends, turns }
}

/** The first line of every file but the first. */
export function turnLine(turn: number): string {
  return `turn ${turn}\n`
}

function parseTurn(line: string): number {
  return Number(/^turn (\d{1,15})$/.exec(line)?.[1] ?? 0)
}

function parseLine(line: string): JournalEntry | undefined {
  const match = /^(accepted|landed|failed|expired|ended) ([1-9A-HJ-NP-Za-km-z]{64,88}) (\d{1,15}) (\d{0,15})$/.exec(
    line,
  )
  if (match === null) return undefined
  const [, state, signature, at, slot] = match
  return {
    state: state as JournalEntry['state'],
    signature: signature as string,
    atMs: Number(at),
    slot: slot === '' ? undefined : Number(slot),
  }
}
