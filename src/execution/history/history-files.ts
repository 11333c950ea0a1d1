import { join } from 'node:path'
import type { Hex } from '../../contract/stream-events.ts'
import type { Clock } from '../../core/clock.ts'
import { openRecordLog, type RecordLog, type RecordPlace } from '../../platform/files/record-log.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import {
  decodeFigures,
  decodeProposals,
  decodeSeconds,
  encodeFigures,
  encodeProposals,
  encodeSeconds,
  RECORD_BYTES_MAX,
} from './history-records.ts'
import type { Incidents, StoredIncident } from './incidents.ts'
import type { Proposal, Proposals } from './proposals.ts'
import type { SecondSeries } from './second-series.ts'

export type HistoryFilesOptions = {
  readonly folder: string
  readonly bytesMax: number
  /** Simulated data is never shown as real, nor the reverse: records of the other kind are not restored. */
  readonly isSimulated: boolean
}

/** What changed since the last write. */
export type HistoryChanges = {
  readonly nowMs: number
  readonly chainId: number | null
  readonly seconds: readonly (readonly number[])[]
  readonly incidents: readonly StoredIncident[]
  readonly proposals: readonly Proposal[]
  /** Those of the proposals whose figures are written too. */
  readonly withFigures: readonly Proposal[]
}

type Target = {
  readonly seconds: Pick<SecondSeries, 'restore'>
  readonly incidents: Pick<Incidents, 'restore'>
  readonly proposals: Pick<Proposals, 'obtain' | 'byId' | 'values' | 'setFigures'>
}

type Deps = { readonly log: Logger; readonly clock: Clock }

export type RestoredHistory = {
  readonly files: HistoryFiles
  /** The last time at which the service is known to have run. */
  readonly lastMs: number | undefined
  readonly chainId: number | null
}

/** The limit is kept by removing files of this share of it. */
const SEGMENTS = 8
/** Every start of a process begins a file; this many are kept even if they are small. */
const SEGMENTS_MAX = 64
/** Seconds take about 100 bytes each, the figures of a block some kilobytes. */
const SECONDS_SHARE = 0.25
/** After a failed write the disk is not used for so long. */
const RETRY_MS = 10_000
/** Written this often also if nothing has changed, as the proof that the service ran. */
const ALIVE_MS = 5000

/**
 * The history on disk: one log for seconds and incidents, one for proposals, each bounded in bytes. Everything in it may be written repeatedly;
 * the last record counts. A failing disk costs history over a restart and nothing else.
 */
export class HistoryFiles implements AsyncDisposable {
  failures = 0
  readonly #options: HistoryFilesOptions
  readonly #deps: Deps
  readonly #seconds: RecordLog
  readonly #blocks: RecordLog
  #written: Promise<void> = Promise.resolve()
  #isWriting = false
  #hasFailed = false
  #writtenMs = Number.NEGATIVE_INFINITY
  #pausedUntilMs = Number.NEGATIVE_INFINITY

  static async open(options: HistoryFilesOptions, deps: Deps & { readonly target: Target }): Promise<RestoredHistory> {
    const { target } = deps
    const { isSimulated } = options
    let lastMs: number | undefined
    let chainId: number | null = null
    const places = new Map<Hex, RecordPlace>()
    await using opening = new AsyncDisposableStack()
    const seconds = opening.use(
      await openRecordLog(logOptions(options, 'seconds'), ({ head }) => {
        const record = decodeSeconds(head)
        if (record === undefined || record.isSimulated !== isSimulated) return
        lastMs = record.nowMs
        chainId = record.chainId
        for (const fields of record.seconds) target.seconds.restore(fields)
        for (const incident of record.incidents) target.incidents.restore(incident)
      }),
    )
    const blocks = opening.use(
      await openRecordLog(logOptions(options, 'blocks'), ({ head, place }) => {
        const record = decodeProposals(head)
        if (record === undefined || record.isSimulated !== isSimulated) return
        for (const { id, number, timeMs, ...more } of record.proposals) {
          const proposal = target.proposals.obtain(id, number, timeMs)
          if (proposal !== undefined) Object.assign(proposal, { timeMs, ...more })
        }
        for (const id of record.withFigures) places.set(id, place)
      }),
    )
    const files = new HistoryFiles(options, deps, seconds, blocks)
    await files.#restoreFigures(target, places)
    opening.move()
    return { files, lastMs, chainId }
  }

  private constructor(options: HistoryFilesOptions, deps: Deps, seconds: RecordLog, blocks: RecordLog) {
    this.#options = options
    this.#deps = deps
    this.#seconds = seconds
    this.#blocks = blocks
  }

  get bytes(): number {
    return this.#seconds.bytes + this.#blocks.bytes
  }

  /** Whether the disk is free and did not fail recently. */
  get mayWrite(): boolean {
    return !this.#isWriting && this.#deps.clock.monotonicMs() >= this.#pausedUntilMs
  }

  /** Writes in the background what has changed; `isForced`: also if nothing has. */
  write(changes: HistoryChanges, { onFailure, isForced }: { onFailure: () => void; isForced: boolean }): void {
    const { proposals, withFigures, seconds, incidents } = changes
    const isDue = isForced || this.#deps.clock.monotonicMs() - this.#writtenMs >= ALIVE_MS
    const isNews = seconds.length > 0 || incidents.length > 0
    if (!isNews && proposals.length === 0 && !isDue) return
    this.#writtenMs = this.#deps.clock.monotonicMs()
    const { isSimulated } = this.#options
    const head = encodeSeconds({ ...changes, isSimulated })
    const rows = encodeProposals({ isSimulated, proposals, withFigures: withFigures.map(({ id }) => id) })
    const figures = encodeFigures(withFigures)
    this.#enqueue(async () => {
      const body = await figures
      // Right after each other: if the process is killed between the two, blocks in these seconds are counted again when they are read again.
      await this.#seconds.append(head, NO_BYTES)
      if (proposals.length > 0) await this.#blocks.append(rows, body)
      await trim(this.#seconds, this.#options.bytesMax * SECONDS_SHARE)
      await trim(this.#blocks, this.#options.bytesMax * (1 - SECONDS_SHARE))
    }, onFailure)
  }

  removeAll(): void {
    this.#enqueue(
      async () => {
        for (const log of [this.#seconds, this.#blocks]) while (log.segments.length > 0) await log.removeOldest()
      },
      () => {},
    )
  }

  /** Resolves when the writes so far are done. */
  async flushed(): Promise<void> {
    await this.#written
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#written
    await this.#seconds[Symbol.asyncDispose]()
    await this.#blocks[Symbol.asyncDispose]()
  }

  /** One after the other. */
  #enqueue(run: () => Promise<void>, onFailure: () => void): void {
    this.#isWriting = true
    const mine = this.#written.then(async () => {
      try {
        await run()
        this.#hasFailed = false
      } catch (err) {
        this.#fail(err)
        onFailure()
      }
      if (this.#written === mine) this.#isWriting = false
    })
    this.#written = mine
  }

  /** The first failure in a row is logged. */
  #fail(err: unknown): void {
    this.failures += 1
    this.#pausedUntilMs = this.#deps.clock.monotonicMs() + RETRY_MS
    const { folder } = this.#options
    if (!this.#hasFailed)
      this.#deps.log.warn(
        { err, folder, retryMs: RETRY_MS },
        'the history cannot be written to disk; a restart will lose what is not written',
      )
    this.#hasFailed = true
  }

  /** Reads the figures of the proposals that are kept, each file position once. */
  async #restoreFigures({ proposals }: Target, places: ReadonlyMap<Hex, RecordPlace>): Promise<void> {
    const wanted = new Map<RecordPlace, Set<Hex>>()
    for (const { id } of proposals.values()) {
      const place = places.get(id)
      if (place !== undefined) wanted.set(place, (wanted.get(place) ?? new Set()).add(id))
    }
    for (const [place, ids] of wanted) {
      const body = await this.#blocks.read(place)
      for (const [id, figures] of body === undefined ? [] : await decodeFigures(body)) {
        const proposal = ids.has(id) ? proposals.byId(id) : undefined
        if (proposal === undefined) continue
        proposals.setFigures(proposal, figures)
      }
    }
  }
}

const NO_BYTES = new Uint8Array()

function logOptions({ folder, bytesMax }: HistoryFilesOptions, name: 'seconds' | 'blocks') {
  const share = name === 'seconds' ? SECONDS_SHARE : 1 - SECONDS_SHARE
  return {
    folder: join(folder, name),
    segmentBytes: Math.ceil((bytesMax * share) / SEGMENTS),
    headBytesMax: RECORD_BYTES_MAX,
    bodyBytesMax: RECORD_BYTES_MAX,
  }
}

async function trim(log: RecordLog, bytesMax: number): Promise<void> {
  while ((log.bytes > bytesMax || log.segments.length > SEGMENTS_MAX) && log.segments.length > 1)
    await log.removeOldest()
}
