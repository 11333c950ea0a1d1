import type { Clock } from '../core/clock.ts'
import type { AppendFile } from '../host/append-file.ts'
import type { JournalContents } from './journal-lines.ts'
import type { Receipt } from './receipt.ts'

/** Two files, written by turns: while one grows, the other keeps what came before. */
export type JournalFiles = readonly [AppendFile, AppendFile]

/** Both are true, or false where the disk refused; neither fails. */
export type Recorded = {
  /** The line was handed to the operating system: the death of this process does not lose it any more. */
  readonly written: Promise<boolean>
  /** The line is on the disk: the death of the machine does not either. */
  readonly safe: Promise<boolean>
}

export type Journal = {
  /** False for a while after the disk refused a line. */
  readonly isOpen: boolean
  /** True from there until it has taken one again. */
  readonly isDoubtful: boolean
  accepted(receipt: Receipt): Recorded
  finished(receipt: Receipt): void
  /** Resolves when everything handed in so far is written, and safe as far as that is wanted. */
  settled(): Promise<void>
}

export type JournalDeps = {
  readonly files: JournalFiles
  /** Where each file ends, as it was read. */
  readonly ends: JournalContents['ends']
  /** Entries that a new file has to begin with, since the file before it will be overwritten. */
  unfinished(): Iterable<Receipt>
  onFailure(error: unknown): void
  onRecovery(): void
  readonly clock: Clock
  /** Without it a line counts as safe once it is written. */
  readonly sync: boolean
  readonly bytesMax?: number
}

/** A turn of this size holds about 500,000 transactions. */
const BYTES_MAX = 64 * 1024 * 1024
const RETRY_MS = 1000

/** Lines of one turn of the loop: they share a write, and one wait for the disk with whatever came during the wait before. */
type Group = {
  text: string
  hasAccepted: boolean
  readonly written: PromiseWithResolvers<boolean>
  readonly safe: PromiseWithResolvers<boolean>
}

/** Goes on in the file that was written last and keeps the other until it is full. */
export async function openJournal(deps: JournalDeps): Promise<Journal> {
  const { files, ends, unfinished, clock, bytesMax = BYTES_MAX } = deps
  // A file is emptied only when the other is full: where both hold something, the shorter one is the newer.
  const isSecond = ends[1] > 0 && (ends[0] === 0 || ends[1] < ends[0])
  let turn: 0 | 1 = isSecond ? 1 : 0
  let at = ends[turn]
  // A line that was torn by a crash would swallow the next one.
  await files[turn].cutTo(at)
  let group: Group | undefined
  let writing: Promise<void> | undefined
  let syncing: Promise<void> | undefined
  let unsafe: { readonly file: AppendFile; readonly group: Group }[] = []
  let failedAtMs: number | undefined

  function append(line: string, isAccepted: boolean): Group {
    group ??= { text: '', hasAccepted: false, written: Promise.withResolvers(), safe: Promise.withResolvers() }
    group.text += line
    group.hasAccepted ||= isAccepted
    writing ??= writeGroups()
    return group
  }

  async function writeGroups(): Promise<void> {
    await Promise.resolve()
    while (group !== undefined) {
      const now: Group = group
      group = undefined
      const isWritten = await write(now.text)
      now.written.resolve(isWritten)
      if (!isWritten || !deps.sync || !now.hasAccepted) now.safe.resolve(isWritten)
      else {
        unsafe.push({ file: files[turn], group: now })
        syncing ??= syncGroups()
      }
    }
    writing = undefined
  }

  async function write(text: string): Promise<boolean> {
    try {
      // What the file that is emptied held and is unfinished stands in the other one too: it began with it.
      if (at + text.length > bytesMax) {
        const next = turn === 0 ? 1 : 0
        await files[next].cutTo(0)
        at = await files[next].writeAt(0, [...unfinished()].map(acceptedLine).join(''))
        turn = next
      }
      at = await files[turn].writeAt(at, text)
      if (failedAtMs !== undefined) deps.onRecovery()
      failedAtMs = undefined
      return true
    } catch (error) {
      fail(error)
      // Half a line must not stay: what is not said to be recorded should not be found either.
      await files[turn].cutTo(at).catch(() => {})
      return false
    }
  }

  async function syncGroups(): Promise<void> {
    while (unsafe.length > 0) {
      const now = unsafe
      unsafe = []
      let isSafe = true
      for (const file of new Set(now.map((one) => one.file))) {
        try {
          await file.sync()
        } catch (error) {
          isSafe = false
          fail(error)
        }
      }
      for (const one of now) one.group.safe.resolve(isSafe)
    }
    syncing = undefined
  }

  function fail(error: unknown): void {
    failedAtMs = clock.monotonicMs()
    deps.onFailure(error)
  }

  return {
    get isOpen() {
      return failedAtMs === undefined || clock.monotonicMs() - failedAtMs >= RETRY_MS
    },
    get isDoubtful() {
      return failedAtMs !== undefined
    },
    accepted(receipt) {
      const { written, safe } = append(acceptedLine(receipt), true)
      return { written: written.promise, safe: safe.promise }
    },
    finished(receipt) {
      if (receipt.state === 'unknown' || receipt.finishedAtMs === undefined) return
      const { signature, acceptedMs, landed } = receipt
      const state = landed !== undefined && landed.error !== null ? 'failed' : receipt.state
      append(`${state} ${signature} ${landed?.atMs ?? acceptedMs} ${landed?.slot ?? ''}\n`, false)
    },
    async settled() {
      while (writing !== undefined || syncing !== undefined) {
        await writing
        await syncing
      }
    },
  }
}

function acceptedLine({ signature, acceptedMs }: Receipt): string {
  return `accepted ${signature} ${acceptedMs} \n`
}
