import type { Clock } from '../../core/clock.ts'
import type { AppendFile } from '../../platform/files/append.ts'
import type { Receipt, ReceiptState } from './receipt.ts'

/** Two files, written alternately: while one grows, the other holds the entries before it. */
export type JournalFiles = readonly [AppendFile, AppendFile]

/** Their names in the folder of the sender. */
export const JOURNAL_NAMES = ['journal-0', 'journal-1'] as const

export type Journal = {
  /** False for RETRY_MS after a failed write. */
  readonly isOpen: boolean
  /** True from a failed write until the next successful one. */
  readonly isDoubtful: boolean
  /** Resolves to true once the line is written (and synced, if the files are opened so), to false when the write failed. Never rejects. */
  recordAccepted(receipt: Receipt): Promise<boolean>
  recordSettled(receipt: Receipt): void
  /** A fork dropped the block of a landed transaction: it has no final state again. */
  recordReverted(receipt: Receipt): void
  /** Resolves when all lines appended so far are written. */
  flushed(): Promise<void>
}

export type JournalDeps = {
  readonly files: JournalFiles
  /** The contents of the files as `readJournal` found them. */
  readonly found: Pick<JournalContents, 'ends' | 'generations'>
  /** Entries that a new file begins with, because the older file is overwritten. */
  unsettled(): Iterable<Receipt>
  onFailure(error: unknown): void
  onRecovery(): void
  readonly clock: Clock
  readonly bytesMax?: number
}

/** A file of this size holds about 500,000 transactions. */
const BYTES_MAX = 64 * 1024 * 1024
const RETRY_MS = 1000

/** Lines appended during a write: they share the next write and its sync. */
type Group = { text: string; readonly written: PromiseWithResolvers<boolean> }

/** Continues in the file that was written last, and switches to the other when it is full. */
export async function openJournal(deps: JournalDeps): Promise<Journal> {
  const { files, found, unsettled, clock, bytesMax = BYTES_MAX } = deps
  let generation = Math.max(...found.generations)
  let current: 0 | 1 = found.generations[1] > found.generations[0] ? 1 : 0
  let at = found.ends[current]
  // Removes a line that a crash left incomplete: the next line would be appended to it.
  await files[current].cutTo(at)
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
      // The next file begins with all unsettled entries, so nothing is lost when the older file is overwritten.
      if (at + text.length > bytesMax) {
        const next = current === 0 ? 1 : 0
        await files[next].cutTo(0)
        at = await files[next].writeAt(0, generationLine(generation + 1) + [...unsettled()].map(acceptedLine).join(''))
        generation += 1
        current = next
      }
      at = await files[current].writeAt(at, text)
      if (failedAtMs !== undefined) deps.onRecovery()
      failedAtMs = undefined
      return true
    } catch (error) {
      failedAtMs = clock.monotonicMs()
      deps.onFailure(error)
      // Removes a partial line: an entry that was reported as not recorded must not be found at a restart.
      await files[current].cutTo(at).catch(() => {})
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
    recordAccepted: (receipt) => append(acceptedLine(receipt)),
    recordSettled(receipt) {
      if (receipt.state === 'unknown' || receipt.settledMonotonicMs === undefined) return
      const { signature, acceptedUnixMs, landed } = receipt
      const state = landed !== undefined && landed.error !== null ? 'failed' : receipt.state
      void append(`${state} ${signature} ${landed?.unixMs ?? acceptedUnixMs} ${landed?.slot ?? ''}\n`)
    },
    // With the time of the revert: an earlier one does not replace the landing.
    recordReverted: ({ signature }) => void append(`accepted ${signature} ${clock.nowMs()} \n`),
    async flushed() {
      while (writing !== undefined) await writing
    },
  }
}

/** The tip has a line of its own, which earlier versions skip. */
function acceptedLine({ signature, acceptedUnixMs, tip, feePayer }: Receipt): string {
  const tipLine = tip === undefined ? '' : `tip ${signature} ${tip.account} ${tip.lamports} ${feePayer ?? ''}\n`
  return `accepted ${signature} ${acceptedUnixMs} \n${tipLine}`
}

/** A line of the journal: a transaction was accepted or reached a final state. */
export type JournalEntry = {
  readonly signature: string
  readonly atMs: number
  readonly state: Exclude<ReceiptState, 'sent' | 'unknown'> | 'failed'
  readonly slot: number | undefined
  /** Undefined in lines of an earlier version. */
  readonly tip?: JournalTip | undefined
}

export type JournalTip = { readonly account: string; readonly lamports: bigint; readonly payer: string }

export type JournalContents = {
  /** The last state of every transaction, oldest first. */
  readonly entries: readonly JournalEntry[]
  /** Where the last complete line of each file ends. */
  readonly ends: readonly [number, number]
  /** Incremented with every switch of files; 0 for the first file and for an empty one. */
  readonly generations: readonly [number, number]
}

const LINE_BYTES_MAX = 256

/** Times of lines, unix ms. */
type JournalTimes = {
  /** Entries since then are kept also beyond `entriesMax`: they are limited by the size of the files. */
  readonly keptFromMs: number
  /** Later ones are left out: with a clock that is behind they would be all entries, and count as new. */
  readonly untilMs: number
}

const ALL_TIMES: JournalTimes = { keptFromMs: Number.POSITIVE_INFINITY, untilMs: Number.POSITIVE_INFINITY }

/** Reads both files, the older one first. Skips incomplete and unknown lines. */
export async function readJournal(
  files: readonly [AppendFile, AppendFile],
  entriesMax: number,
  { keptFromMs, untilMs } = ALL_TIMES,
): Promise<JournalContents> {
  const entries = new Map<string, JournalEntry>()
  const ends: [number, number] = [0, 0]
  const generations = [await readGeneration(files[0]), await readGeneration(files[1])] as const
  for (const index of generations[1] < generations[0] ? ([1, 0] as const) : ([0, 1] as const)) {
    for await (const { bytes, at, ended } of files[index].lines(0, LINE_BYTES_MAX)) {
      if (!ended) continue
      ends[index] = at + bytes.length + 1
      const line = textOf(bytes)
      const tip = parseTipLine(line)
      const tipped = tip && entries.get(tip.signature)
      if (tip !== undefined && tipped !== undefined) entries.set(tip.signature, { ...tipped, tip: tip.tip })
      const entry = parseLine(line)
      if (entry === undefined) continue
      const before = entries.get(entry.signature)
      // An unsettled entry that was copied to the next file does not replace its later state.
      if (entry.state === 'accepted' && before !== undefined && before.atMs >= entry.atMs) continue
      entries.delete(entry.signature)
      const withTip = before?.tip === undefined ? entry : { ...entry, tip: before.tip }
      entries.set(entry.signature, withTip)
      for (const [oldest, { atMs }] of entries) {
        if (entries.size <= entriesMax * 2 || (atMs >= keptFromMs && atMs <= untilMs)) break
        entries.delete(oldest)
      }
    }
  }
  const sorted = [...entries.values()].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)
  const kept = sorted.filter(({ atMs }, at) => at >= sorted.length - entriesMax || atMs >= keptFromMs)
  return { entries: kept, ends, generations }
}

async function readGeneration(file: AppendFile): Promise<number> {
  for await (const { bytes, ended } of file.lines(0, LINE_BYTES_MAX)) return ended ? parseGeneration(textOf(bytes)) : 0
  return 0
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
}

/** The first line of every file but the first. */
function generationLine(generation: number): string {
  return `turn ${generation}\n`
}

function parseGeneration(line: string): number {
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

function parseTipLine(line: string): { signature: string; tip: JournalTip } | undefined {
  const match =
    /^tip ([1-9A-HJ-NP-Za-km-z]{64,88}) ([1-9A-HJ-NP-Za-km-z]{32,44}) (\d{1,20}) ([1-9A-HJ-NP-Za-km-z]{0,44})$/.exec(
      line,
    )
  if (match === null) return undefined
  const [, signature = '', account = '', lamports = '', payer = ''] = match
  return { signature, tip: { account, lamports: BigInt(lamports), payer } }
}
