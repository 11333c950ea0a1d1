import type { Clock } from '../../core/clock.ts'
import { isServiceError, messageOf } from '../../core/error.ts'
import { CommitInDoubt } from '../../platform/db/sql.ts'
import { createTimeSlices, type TimeSlices } from '../../platform/process/time-slices.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { AccessStore } from '../store/store.ts'
import { rowsOf, type UsageBatch, UsageQueue } from './queue.ts'
import type { UsageSpool } from './spool.ts'
import { SpoolState } from './spool-state.ts'

/** A store locked by another writer is kept waiting in memory for this long, since the next attempt usually succeeds. */
const LOCKED_MS_MAX = 3000

export type UsageState = {
  readonly waitingRows: number
  /** Those of them that are on the disk of the state folder as well. */
  readonly spooledRows: number
  /** Rows dropped because the store could not be written and the maximum was reached. */
  readonly lostRows: number
  readonly flushes: number
  /** Failed writes to the store, each followed by a save on the disk. */
  readonly failures: number
  /** Set while writes fail: the error code and since when. */
  readonly failing: { readonly code: string; readonly sinceMs: number } | undefined
  /** Set while usage cannot be written to the store and not to the disk either. */
  readonly spoolFailing: string | undefined
}

export type UsageWriterDeps = {
  readonly store: Pick<AccessStore, 'addUsage'>
  readonly clock: Clock
  readonly log: Logger
  readonly spool: UsageSpool | undefined
  /** Distinguishes the batches of this process from those of others. */
  readonly spoolId: string
  readonly waitingRowsMax: number
  readonly slices?: TimeSlices | undefined
}

/**
 * Writes usage to the store in numbered batches. The store records the number of the last batch in the same transaction, so a batch can be repeated
 * when the response to its commit was lost, also by the next process. While the store cannot be written, what waits is saved in the spool.
 *
 * A batch with a number never changes while the spool may contain it or its commit is in doubt.
 */
export class UsageWriter {
  readonly #deps: UsageWriterDeps
  readonly queue = new UsageQueue()
  readonly #spooled: SpoolState
  #id: string
  #seq = 1
  /** Batches that have their numbers; the first one has `#seq`. */
  #planned: UsageBatch[] = []
  /** Whether the first of them may be in the store: the response to its commit was lost. */
  #isInDoubt = false
  /** Counts the plans. */
  #plan = 0
  #isClosing = false
  #lostRows = 0
  #flushes = 0
  #failures = 0
  #failing: UsageState['failing']

  constructor(deps: UsageWriterDeps) {
    this.#deps = deps
    this.#spooled = new SpoolState(deps)
    const found = deps.spool?.found
    this.#id = found?.id ?? deps.spoolId
    if (found === undefined) return
    this.#seq = found.seq
    this.#planned = [...found.planned]
    this.queue.putBack([found.open])
    this.#spooled.found({ queue: this.queue.version, plan: this.#plan, rows: this.#waitingRows })
  }

  get #waitingRows(): number {
    return rowsOf(this.#planned) + this.queue.rowCount
  }

  get #isDone(): boolean {
    return this.#planned.length === 0 && this.queue.isEmpty
  }

  state(): UsageState {
    return {
      waitingRows: this.#waitingRows,
      spooledRows: Math.min(this.#spooled.rows, this.#waitingRows),
      lostRows: this.#lostRows,
      flushes: this.#flushes,
      failures: this.#failures,
      failing: this.#failing,
      spoolFailing: this.#spooled.failing,
    }
  }

  /** Whether everything that waits is on the disk. */
  get isSafe(): boolean {
    return this.#isDone || this.#spooled.hasRowsOf(this.queue.version)
  }

  /** Units that are not in the store, at least. */
  waitingUnits(): number {
    const batches = [...this.#planned, this.queue.content()]
    return batches.reduce((sum, { rows }) => sum + rows.reduce((units, row) => units + row.units, 0), 0)
  }

  /** Writes what waits. Never throws: what could not be written stays, and is saved in the spool. */
  async flush(): Promise<void> {
    try {
      await this.#write()
      this.#flushes += 1
      if (this.#failing !== undefined) {
        const forMs = this.#deps.clock.monotonicMs() - this.#failing.sinceMs
        this.#deps.log.info({ forMs, lostRows: this.#lostRows }, 'usage is written again')
      }
      this.#failing = undefined
    } catch (error) {
      await this.#handleFailure(error)
    }
  }

  /** Saves what is not in the store. Throws when the disk cannot be written. */
  save(): Promise<void> {
    const version = { queue: this.queue.version, plan: this.#plan, rows: this.#waitingRows }
    return this.#spooled.save(version, () => ({
      id: this.#id,
      seq: this.#seq,
      planned: [...this.#planned],
      open: this.queue.content(),
    }))
  }

  /** While a write gets no response: usage that was counted since is safe, too. Never throws. */
  async saveWhileWriting(): Promise<void> {
    if (!this.#spooled.isSaveDue || this.isSafe) return
    await this.save().catch(() => {})
  }

  /** From now on no new batch is sent; one that is under way may still be written, which is safe. */
  close(): void {
    this.#isClosing = true
  }

  async #write(): Promise<void> {
    await this.#writePlanned()
    // The plan of an earlier attempt is followed by what was counted since.
    if (!this.queue.isEmpty && !this.#isClosing) {
      this.#planned = this.queue.takeBatches()
      this.#plan += 1
      await this.#writePlanned()
    }
    if (this.#spooled.mayContain && this.#isDone) await this.#spooled.clear()
  }

  async #writePlanned(): Promise<void> {
    // The spool must not contain these rows without their numbers when they are sent, or the next process would send them again.
    if (this.#planned.length > 0 && this.#spooled.lacksPlan(this.#plan))
      await this.save().catch(() => this.#spooled.clear())
    const { store, slices = createTimeSlices() } = this.#deps
    for (let batch = this.#planned[0]; batch !== undefined; batch = this.#planned[0]) {
      const mark = { spool: this.#id, seq: this.#seq, isDurable: this.#spooled.mayContain }
      await store.addUsage(batch.rows, new Map(batch.used), mark)
      this.#isInDoubt = false
      this.#planned.shift()
      this.#seq += 1
      // SQLite writes a batch in the event loop. Each batch is a transaction with its number, so a flush may end after any of them.
      if (this.#planned.length > 0 && slices.isSpent()) await slices.yield()
    }
  }

  async #handleFailure(error: unknown): Promise<void> {
    const { spool, waitingRowsMax } = this.#deps
    const code = isServiceError(error) ? error.code : 'internal'
    this.#recordFailure(code, error)
    if (spool !== undefined && this.#isLong(code)) await this.saveWhileWriting()
    if (error instanceof CommitInDoubt) this.#isInDoubt = true
    // Merged with what is counted next, unless the numbers may be known elsewhere.
    if (!this.#spooled.mayContain && !this.#isInDoubt) {
      this.queue.putBack(this.#planned)
      this.#planned = []
    }
    this.#lostRows += this.queue.dropBeyond(waitingRowsMax)
    this.#failures += 1
  }

  #isLong(code: string): boolean {
    if (code !== 'store-locked') return true
    return this.#deps.clock.monotonicMs() - (this.#failing?.sinceMs ?? 0) >= LOCKED_MS_MAX
  }

  #recordFailure(code: string, error: unknown): void {
    const { clock, log, spool } = this.#deps
    if (this.#failing?.code === code) return
    this.#failing = { code, sinceMs: this.#failing?.sinceMs ?? clock.monotonicMs() }
    // A locked store is transient: another process writes, and the next flush retries.
    if (code === 'store-locked') log.debug({ code }, 'usage waits for the store')
    else
      log.warn(
        { code, err: messageOf(error), waitingRows: this.#waitingRows, ...(spool ? { file: spool.name } : {}) },
        spool ? 'usage cannot be written and is kept on the disk' : 'usage cannot be written and is held in memory',
      )
  }
}
