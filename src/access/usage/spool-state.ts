import type { Clock } from '../../core/clock.ts'
import { messageOf } from '../../core/error.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { SpooledUsage, UsageSpool } from './spool.ts'

/** Saving takes at most one part in this many of the time, when there is very much to save. */
const SAVE_PERIOD_PARTS = 20

/** The usage that waits at one moment: the version of the queue, the number of the plan, and the rows of both. */
export type WaitingVersion = { readonly queue: number; readonly plan: number; readonly rows: number }

export type SpoolStateDeps = {
  readonly spool: UsageSpool | undefined
  readonly clock: Clock
  readonly log: Logger
}

/** Saves usage in the spool, and knows how much of what waits the spool contains. */
export class SpoolState {
  readonly #deps: SpoolStateDeps
  #mayContain = false
  #saved: WaitingVersion = { queue: -1, plan: 0, rows: 0 }
  #failing: string | undefined
  #nextSaveMs = 0

  constructor(deps: SpoolStateDeps) {
    this.#deps = deps
  }

  /** Whether the spool may contain usage. */
  get mayContain(): boolean {
    return this.#mayContain
  }

  /** Rows of the last save. */
  get rows(): number {
    return this.#saved.rows
  }

  /** Set while the disk cannot be written. */
  get failing(): string | undefined {
    return this.#failing
  }

  get isSaveDue(): boolean {
    return this.#deps.spool !== undefined && this.#deps.clock.monotonicMs() >= this.#nextSaveMs
  }

  /** Whether everything that waits is on the disk: rows that were planned since the save are there without their numbers. */
  hasRowsOf(queueVersion: number): boolean {
    return this.#mayContain && this.#saved.queue === queueVersion && this.#failing === undefined
  }

  /** Whether the spool may contain usage, but not the batches of this plan with their numbers. */
  lacksPlan(plan: number): boolean {
    return this.#mayContain && this.#saved.plan !== plan
  }

  /** The process before this one left usage in the spool. */
  found(version: WaitingVersion): void {
    this.#mayContain = true
    this.#saved = version
  }

  /** Throws when the disk cannot be written. */
  async save(version: WaitingVersion, content: () => SpooledUsage): Promise<void> {
    const { spool, clock, log } = this.#deps
    if (spool === undefined) throw new Error('there is no spool')
    const fromMs = clock.monotonicMs()
    this.#mayContain = true
    try {
      await spool.save(content())
      this.#saved = version
      this.#failing = undefined
    } catch (error) {
      if (this.#failing === undefined)
        log.error({ err: messageOf(error), file: spool.name }, 'usage cannot be saved on the disk either')
      this.#failing = messageOf(error)
      throw error
    } finally {
      this.#nextSaveMs = clock.monotonicMs() + SAVE_PERIOD_PARTS * (clock.monotonicMs() - fromMs)
    }
  }

  async clear(): Promise<void> {
    // Before it is done: a save that begins meanwhile comes after it.
    this.#mayContain = false
    try {
      await this.#deps.spool?.clear()
      if (this.#mayContain) return
      this.#saved = { ...this.#saved, rows: 0 }
      this.#failing = undefined
    } catch (error) {
      this.#mayContain = true
      throw error
    }
  }
}
