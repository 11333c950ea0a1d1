import type { Clock } from '../../core/clock.ts'
import type { AppendFile } from '../../platform/files/append.ts'
import { type JournalContents, turnLine } from './journal-lines.ts'
import type { Receipt } from './receipt.ts'

/** Two files, written by turns: while one grows, the other keeps what came before. */
export type JournalFiles = readonly [AppendFile, AppendFile]

export type Journal = {
  /** False for a while after the disk refused a line. */
  readonly isOpen: boolean
  /** True from there until it has taken one again. */
  readonly isDoubtful: boolean
  /** True once the line is written, and by files that write through also on the disk; false where the disk refused it. Never fails. */
  accepted(receipt: Receipt): Promise<boolean>
  finished(receipt: Receipt): void
  /** Resolves when everything handed in so far is written. */
  settled(): Promise<void>
}

export type JournalDeps = {
  readonly files: JournalFiles
  /** What was found in them. */
  readonly found: Pick<JournalContents, 'ends' | 'turns'>
  /** Entries that a new file has to begin with, since the file before it will be overwritten. */
  unfinished(): Iterable<Receipt>
  onFailure(error: unknown): void
  onRecovery(): void
  readonly clock: Clock
  readonly bytesMax?: number
}

/** A turn of this size holds about 500,000 transactions. */
const BYTES_MAX = 64 * 1024 * 1024
const RETRY_MS = 1000

/** Lines that came while the ones before were written: they share a write, and with it one wait for the disk. */
type Group = { text: string; readonly written: PromiseWithResolvers<boolean> }

/** Goes on in the file that was written last and keeps the other until it is full. */
export async function openJournal(deps: JournalDeps): Promise<Journal> {
  const { files, found, unfinished, clock, bytesMax = BYTES_MAX } = deps
  let turn = Math.max(...found.turns)
  let position: 0 | 1 = found.turns[1] > found.turns[0] ? 1 : 0
  let at = found.ends[position]
  // A line that was torn by a crash would swallow the next one.
  await files[position].cutTo(at)
  let group: Group | undefined
  let writing: Promise<void> | undefined
  let failedAtMs: number | undefined

  function append(line: string): Promise<boolean> {
    group ??= { text: '', written: Promise.withResolvers() }
    group.text += line
    writing ??= writeGroups()
    return group.written.promise
  }

  async function writeGroups(): Promise<void> {
    await Promise.resolve()
    while (group !== undefined) {
      const { text, written }: Group = group
      group = undefined
      written.resolve(await write(text))
    }
    writing = undefined
  }

  async function write(text: string): Promise<boolean> {
    try {
      // What the file that is emptied held and is unfinished stands in the other one too: it began with it.
      if (at + text.length > bytesMax) {
        const next = position === 0 ? 1 : 0
        await files[next].cutTo(0)
        at = await files[next].writeAt(0, turnLine(turn + 1) + [...unfinished()].map(acceptedLine).join(''))
        turn += 1
        position = next
      }
      at = await files[position].writeAt(at, text)
      if (failedAtMs !== undefined) deps.onRecovery()
      failedAtMs = undefined
      return true
    } catch (error) {
      failedAtMs = clock.monotonicMs()
      deps.onFailure(error)
      // Half a line must not stay: what is not said to be recorded should not be found either.
      await files[position].cutTo(at).catch(() => {})
      return false
    }
  }

  return {
    get isOpen() {
      return failedAtMs === undefined || clock.monotonicMs() - failedAtMs >= RETRY_MS
    },
    get isDoubtful() {
      return failedAtMs !== undefined
    },
    accepted: (receipt) => append(acceptedLine(receipt)),
    finished(receipt) {
      if (receipt.state === 'unknown' || receipt.finishedAtMs === undefined) return
      const { signature, acceptedMs, landed } = receipt
      const state = landed !== undefined && landed.error !== null ? 'failed' : receipt.state
      void append(`${state} ${signature} ${landed?.atMs ?? acceptedMs} ${landed?.slot ?? ''}\n`)
    },
    async settled() {
      while (writing !== undefined) await writing
    },
  }
}

function acceptedLine({ signature, acceptedMs }: Receipt): string {
  return `accepted ${signature} ${acceptedMs} \n`
}
