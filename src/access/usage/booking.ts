import type { Clock } from '../../core/clock.ts'
import { isServiceError, messageOf } from '../../core/error.ts'
import { CommitInDoubt } from '../../platform/db/sql.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { AccessStore } from '../store/store.ts'
import { rowsOf, type UsageBatch, UsageQueue } from './queue.ts'
import type { UsageSpool } from './spool.ts'

/** A store locked by another writer is kept waiting in memory for this long, since the next attempt usually succeeds. */
const LOCKED_MS_MAX = 3000
/** Saving takes at most one part in this many of the time, when there is very much to save. */
const SAVE_PERIOD_PARTS = 20

export type UsageBookingState = {
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

export type UsageBookingDeps = {
  readonly store: Pick<AccessStore, 'addUsage'>
  readonly clock: Clock
  readonly log: Logger
  readonly spool: UsageSpool | undefined
  /** Distinguishes the batches of this process from those of others. */
  readonly spoolId: string
  readonly waitingRowsMax: number
}

/**
 * Writes usage to the store in numbered batches. The store records the number of the last batch in the same transaction, so a batch can be repeated
 * when the response to its commit was lost, also by the next process. While the store cannot be written, what waits is saved in the spool.
 *
 * A batch with a number never changes while the spool may contain it or its commit is in doubt.
 */
export class UsageBooking {
  readonly #deps: UsageBookingDeps
  readonly queue = new UsageQueue()
  #id: string
  #seq = 1
  #planned: UsageBatch[] = []
  /** Whether the spool may contain usage. */
  #isSpooled = false
  /** Counts the plans; the second is that of the plan in the spool. */
  #plan = 0
  #spooledPlan = 0
  #isClosing = false
  /** The version of the queue that was saved last. */
  #savedVersion = -1
  #spooledRows = 0
  #nextSaveMs = 0
  #lostRows = 0
  #flushes = 0
  #failures = 0
  #failing: UsageBookingState['failing']
  #spoolFailing: string | undefined

  constructor(deps: UsageBookingDeps) {
    this.#deps = deps
    const found = deps.spool?.found
    this.#id = found?.id ?? deps.spoolId
    if (found === undefined) return
    this.#seq = found.seq
    this.#planned = [...found.planned]
    this.queue.putBack([found.open])
    this.#isSpooled = true
    this.#savedVersion = this.queue.version
    this.#spooledRows = this.#waitingRows
  }

  get #waitingRows(): number {
    return rowsOf(this.#planned) + this.queue.rowCount
  }

  state(): UsageBookingState {
    return {
      waitingRows: this.#waitingRows,
      spooledRows: Math.min(this.#spooledRows, this.#waitingRows),
      lostRows: this.#lostRows,
      flushes: this.#flushes,
      failures: this.#failures,
      failing: this.#failing,
      spoolFailing: this.#spoolFailing,
    }
  }

  /** Whether everything that waits is on the disk. */
  get isSafe(): boolean {
    const { queue } = this
    if (this.#planned.length === 0 && queue.isEmpty) return true
    return this.#isSpooled && this.#savedVersion === queue.version && this.#spoolFailing === undefined
  }

  /** Units that are not in the store, at least. */
  waitingUnits(): number {
    const batches = [...this.#planned, this.queue.content()]
    return batches.reduce((sum, { rows }) => sum + rows.reduce((units, row) => units + row.units, 0), 0)
  }

  /** Writes what waits. Never throws: what could not be written stays, and is saved in the spool. */
  async flush(): Promise<void> {
    try {
      await this.#book()
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
  async save(): Promise<void> {
    const { spool, clock } = this.#deps
    if (spool === undefined) throw new Error('there is no spool')
    const { version } = this.queue
    const plan = this.#plan
    const rows = this.#waitingRows
    const fromMs = clock.monotonicMs()
    this.#isSpooled = true
    try {
      await spool.save({ id: this.#id, seq: this.#seq, planned: [...this.#planned], open: this.queue.content() })
      this.#savedVersion = version
      this.#spooledPlan = plan
      this.#spooledRows = rows
      this.#spoolFailing = undefined
    } catch (error) {
      if (this.#spoolFailing === undefined)
        this.#deps.log.error({ err: messageOf(error), file: spool.name }, 'usage cannot be saved on the disk either')
      this.#spoolFailing = messageOf(error)
      throw error
    } finally {
      this.#nextSaveMs = clock.monotonicMs() + SAVE_PERIOD_PARTS * (clock.monotonicMs() - fromMs)
    }
  }

  /** While a write gets no response: usage that was counted since is safe, too. Never throws. */
  async saveWhileWriting(): Promise<void> {
    if (this.#deps.spool === undefined || this.#deps.clock.monotonicMs() < this.#nextSaveMs) return
    if (this.isSafe) return
    await this.save().catch(() => {})
  }

  /** From now on no new batch is sent; one that is under way may still be written, which is safe. */
  close(): void {
    this.#isClosing = true
  }

  async #book(): Promise<void> {
    await this.#bookPlanned()
    // The plan of an earlier attempt is followed by what was counted since.
    if (!this.queue.isEmpty && !this.#isClosing) {
      this.#planned = this.queue.takeBatches()
      this.#plan += 1
      await this.#bookPlanned()
    }
    if (this.#isSpooled && this.#planned.length === 0 && this.queue.isEmpty) await this.#clear()
  }

  async #bookPlanned(): Promise<void> {
    if (this.#planned.length > 0 && this.#isSpooled && this.#spooledPlan !== this.#plan) await this.#spoolPlan()
    for (let batch = this.#planned[0]; batch !== undefined; batch = this.#planned[0]) {
      const mark = { spool: this.#id, seq: this.#seq, isDurable: this.#isSpooled }
      await this.#deps.store.addUsage(batch.rows, new Map(batch.used), mark)
      this.#planned.shift()
      this.#seq += 1
    }
  }

  /** The spool must not contain these rows without their numbers when they are sent, or the next process would send them again. */
  async #spoolPlan(): Promise<void> {
    await this.save().catch(() => this.#clear())
  }

  async #clear(): Promise<void> {
    // Before it is done: a save that begins meanwhile comes after it.
    this.#isSpooled = false
    try {
      await this.#deps.spool?.clear()
      if (this.#isSpooled) return
      this.#spooledRows = 0
      this.#spoolFailing = undefined
    } catch (error) {
      this.#isSpooled = true
      throw error
    }
  }

  async #handleFailure(error: unknown): Promise<void> {
    const { spool, waitingRowsMax } = this.#deps
    const code = isServiceError(error) ? error.code : 'internal'
    this.#recordFailure(code, error)
    if (spool !== undefined && this.#isLong(code)) await this.saveWhileWriting()
    // Merged with what is counted next, unless the numbers may be known elsewhere.
    if (!this.#isSpooled && !(error instanceof CommitInDoubt)) {
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
