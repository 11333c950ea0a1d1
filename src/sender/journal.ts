import type { AppendFile } from '../host/append-file.ts'
import type { Receipt, ReceiptState } from './receipt.ts'

/** What a line of the journal says: a transaction was accepted, or came to its end. */
export type JournalEntry = {
  readonly signature: string
  readonly atMs: number
  readonly state: Exclude<ReceiptState, 'sent' | 'unknown'> | 'failed'
  readonly slot: number | undefined
}

export type Journal = {
  /** Resolves when the line has been handed to the operating system: a crash of the process does not lose it any more. */
  accepted(receipt: Receipt): Promise<void>
  finished(receipt: Receipt): void
  /** Resolves when everything handed in so far is written. */
  settled(): Promise<void>
}

export type JournalDeps = {
  /** Two files, written by turns: while one grows, the other keeps what came before. */
  readonly files: readonly [AppendFile, AppendFile]
  /** Entries that a new file has to begin with, since the file before it will be overwritten. */
  unfinished(): Iterable<Receipt>
  onFailure(error: unknown): void
  readonly bytesMax?: number
}

/** A turn of this size holds about 300,000 transactions. */
const BYTES_MAX = 64 * 1024 * 1024
const LINE_BYTES_MAX = 256

/** Goes on in the file that was written last and keeps the other until it is full. */
export async function openJournal({
  files,
  unfinished,
  onFailure,
  bytesMax = BYTES_MAX,
}: JournalDeps): Promise<Journal> {
  const sizes = [await files[0].size(), await files[1].size()] as const
  // A file is emptied only when the other is full: where both hold something, the shorter one is the newer.
  const isSecond = sizes[1] > 0 && (sizes[0] === 0 || sizes[1] < sizes[0])
  let turn: 0 | 1 = isSecond ? 1 : 0
  let at = sizes[turn]
  let batch = ''
  let running: Promise<void> | undefined

  async function write(): Promise<void> {
    // One turn of the loop lets everything accepted in it share a write.
    await Promise.resolve()
    while (batch !== '') {
      const text = batch
      batch = ''
      try {
        if (at + text.length > bytesMax) {
          turn = turn === 0 ? 1 : 0
          await files[turn].cutTo(0)
          at = await files[turn].writeAt(0, [...unfinished()].map(acceptedLine).join(''))
        }
        at = await files[turn].writeAt(at, text)
      } catch (error) {
        onFailure(error)
      }
    }
    running = undefined
  }

  function append(line: string): Promise<void> {
    batch += line
    running ??= write()
    return running
  }

  return {
    accepted: (receipt) => append(acceptedLine(receipt)),
    finished(receipt) {
      if (receipt.state === 'unknown' || receipt.finishedAtMs === undefined) return
      const { signature, acceptedMs, landed } = receipt
      const state = landed !== undefined && landed.error !== null ? 'failed' : receipt.state
      void append(`${state} ${signature} ${landed?.atMs ?? acceptedMs} ${landed?.slot ?? ''}\n`)
    },
    settled: async () => running,
  }
}

function acceptedLine({ signature, acceptedMs }: Receipt): string {
  return `accepted ${signature} ${acceptedMs} \n`
}

/** The last word on every transaction in the files, oldest first. A torn or foreign line is passed over. */
export async function readJournal(files: readonly AppendFile[], entriesMax: number): Promise<JournalEntry[]> {
  const entries = new Map<string, JournalEntry>()
  for (const file of files) {
    for await (const { bytes, ended } of file.lines(0, LINE_BYTES_MAX)) {
      const entry = ended ? parseLine(Buffer.from(bytes).toString('latin1')) : undefined
      if (entry === undefined) continue
      const before = entries.get(entry.signature)
      // A transaction repeated in the next file's head was accepted, not finished anew.
      if (entry.state === 'accepted' && before !== undefined && before.atMs >= entry.atMs) continue
      entries.delete(entry.signature)
      entries.set(entry.signature, entry)
      if (entries.size > entriesMax * 2) entries.delete(entries.keys().next().value as string)
    }
  }
  return [...entries.values()].sort((a, b) => a.atMs - b.atMs).slice(-entriesMax)
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
