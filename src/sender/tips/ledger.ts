import type { Clock } from '../../core/clock.ts'
import type { TipCounter, TipEvent } from './counter.ts'

export type TipLedgerDeps = {
  readonly counter: TipCounter
  readonly clock: Clock
  onFailure(error: unknown): void
  /** Too many events wait, so this one and those that follow are lost. Called once before `onRecovery`. */
  onLoss(): void
  /** Everything recorded is counted again, but for what was lost. */
  onRecovery(): void
}

/** Events that wait for the disk; more are lost, and counted. */
export const WAITING_MAX = 100_000
/**
 * Longer than most transactions need to land, so that accepting and landing are one write. What a crash loses of it is read back from the
 * journal.
 */
const FLUSH_MS = 5000
/** Transactions in a message to the counter: cloning it takes the event loop a fraction of a millisecond. */
const BATCH = 50
/** The journal is read back from so long before the last flush: its lines are written before the events are counted. */
const READ_BACK_MS = 600_000

/** Holds what became of transactions until it is counted, some seconds later. */
export class TipLedger implements AsyncDisposable {
  /** Events that were not counted. */
  lost = 0
  readonly #deps: TipLedgerDeps
  readonly #timer: { cancel(): void; unref?: () => void }
  /** By signature, so that the events of a transaction are counted together. */
  readonly #waiting = new Map<string, TipEvent[]>()
  #waitingCount = 0
  #writing: Promise<void> | undefined
  #hasFailed = false
  #isLosing = false

  constructor(deps: TipLedgerDeps) {
    this.#deps = deps
    this.#timer = deps.clock.setRepeating(FLUSH_MS, () => void this.flush())
    this.#timer.unref?.()
  }

  /**
   * True for the time of a line of the journal that may not be counted yet. The last count lies in the future where the clock was ahead at that time or is
   * behind now. Lines of the future are left out: with a clock that is behind they would be all lines, and the old ones would be counted again.
   */
  readonly isReadBack = (atMs: number): boolean => {
    const nowMs = this.#deps.clock.nowMs()
    return atMs >= Math.min(this.#deps.counter.countedMs, nowMs) - READ_BACK_MS && atMs <= nowMs + READ_BACK_MS
  }

  record(event: TipEvent): void {
    if (this.#waitingCount >= WAITING_MAX) {
      this.lost += 1
      if (!this.#isLosing) this.#deps.onLoss()
      this.#isLosing = true
      return
    }
    this.#waitingCount += 1
    const earlier = this.#waiting.get(event.signature)
    if (earlier === undefined) this.#waiting.set(event.signature, [event])
    else earlier.push(event)
  }

  /** Resolves when everything recorded so far is written, or cannot be written now. */
  async flush(): Promise<void> {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined
    })
    await this.#writing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer.cancel()
    await this.flush()
    await this.#deps.counter[Symbol.asyncDispose]()
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.#waiting.size > 0) await this.#write(this.#takeBatch())
      if (this.#hasFailed || this.#isLosing) this.#deps.onRecovery()
      this.#hasFailed = false
      this.#isLosing = false
    } catch (error) {
      if (!this.#hasFailed) this.#deps.onFailure(error)
      this.#hasFailed = true
    }
  }

  #takeBatch(): TipEvent[] {
    const batch: TipEvent[] = []
    let transactions = 0
    for (const [signature, events] of this.#waiting) {
      this.#waiting.delete(signature)
      batch.push(...events)
      transactions += 1
      if (transactions === BATCH) break
    }
    this.#waitingCount -= batch.length
    return batch
  }

  async #write(batch: readonly TipEvent[]): Promise<void> {
    try {
      await this.#deps.counter.count(batch)
    } catch (error) {
      // They wait again, before what was recorded of the same transactions meanwhile.
      for (const event of batch.toReversed()) {
        const later = this.#waiting.get(event.signature)
        if (later === undefined) this.#waiting.set(event.signature, [event])
        else later.unshift(event)
      }
      this.#waitingCount += batch.length
      throw error
    }
  }
}
