import type { Clock } from '../../core/clock.ts'
import { HOUR_MS, MINUTE_MS } from '../../core/human-units.ts'

/** How long a jump of the wall clock must last before it is adopted. */
export const JUMP_HOLD_MS = 3_600_000
/** A smaller difference is an adjustment of the clock, not a jump. */
const ADJUSTMENT_MS = 2000
/** The largest rate error of a clock that is being adjusted. */
const ADJUSTMENT_RATE = 0.001
/** Clocks of machines that write to one store differ by so much. */
const SKEW_MS = 60_000
/** How long after the start of the process a jump back is more likely the first correction of a clock than an error. */
const START_MS = 600_000
const UPDATE_MS = 1000
const UNSEEN_MS_MAX = 60_000

/** What a calendar publishes to other threads: Float64 fields, each written by one thread. An aligned field of 8 bytes is read and written whole. */
const PUBLISHED = { offsetMs: 0, month: 1 } as const
const PUBLISHED_BYTES = 16

export type CalendarOptions = {
  /** The time of the newest record in the store, as the process starts. */
  readonly recordedMs?: number | undefined
  /** Called once for a jump of the wall clock, when it is found. */
  readonly onJump?: (byMs: number) => void
}

/**
 * The calendar of quota and usage: UTC months, hours and minutes of a wall clock without jumps. Between two updates it follows the monotonic clock.
 * A jump of the wall clock is adopted only after an hour, so a clock that is set wrong and corrected neither starts nor ends a month. The month
 * only moves forward: when an adopted jump back leaves it ahead by one, the current month lasts longer; a month further ahead, which only a grossly
 * wrong clock explains, is corrected.
 *
 * The clock may be wrong when the process starts, until the machine has reached a time server. A clock before the newest record in the store is wrong
 * for certain, and one that is soon set back to a time after that record was probably ahead: such a correction is adopted at once.
 *
 * The threads of a process have one calendar: the main thread follows the wall clock and publishes the difference to the monotonic clock, which is
 * the same for all threads. They read it at every update, so a month begins for all of them at the same moment.
 */
export class Calendar {
  /** Months since January 1970. */
  month: number
  /** Hours and minutes since 1970: small integers, which V8 stores without a heap number. */
  hour = 0
  minute = 0
  /** Undefined in a thread that follows the calendar of the main thread. */
  readonly #clock: Clock | undefined
  readonly #published: Float64Array<SharedArrayBuffer>
  #offsetMs: number
  #updatedAtMs: number
  #nextUpdateMs: number
  #jump: { offsetMs: number; sinceMs: number } | undefined
  readonly #startedAtMs: number
  readonly #recordedMs: number | undefined
  readonly #onJump: CalendarOptions['onJump']

  /** Follows the wall clock, or the calendar that another thread has `shared`. */
  constructor(source: Clock | SharedArrayBuffer, options: CalendarOptions = {}) {
    this.#recordedMs = options.recordedMs
    this.#onJump = options.onJump
    this.#clock = source instanceof SharedArrayBuffer ? undefined : source
    this.#published = new Float64Array(
      source instanceof SharedArrayBuffer ? source : new SharedArrayBuffer(PUBLISHED_BYTES),
    )
    this.#updatedAtMs = this.#clock?.monotonicMs() ?? 0
    this.#startedAtMs = this.#updatedAtMs
    this.#nextUpdateMs = this.#updatedAtMs
    if (this.#clock === undefined) {
      this.#offsetMs = Number.NaN
      this.month = this.#published[PUBLISHED.month] as number
      return
    }
    this.#offsetMs = this.#clock.nowMs() - this.#updatedAtMs
    this.month = monthOf(this.#clock.nowMs())
    this.#refresh(this.#updatedAtMs)
  }

  /** For the constructor in another thread. */
  get shared(): SharedArrayBuffer {
    return this.#published.buffer
  }

  /** Updates the fields. Cheap enough for every call. */
  update(monotonicMs: number): void {
    if (monotonicMs >= this.#nextUpdateMs || this.#published[PUBLISHED.offsetMs] !== this.#offsetMs)
      this.#refresh(monotonicMs)
  }

  /** Unix ms at a time of the monotonic clock near the last update. */
  wallMs(monotonicMs: number): number {
    return monotonicMs + this.#offsetMs
  }

  /** Milliseconds until the month after `month` begins. */
  untilNextMonthMs(monotonicMs: number): number {
    return Math.max(0, Math.ceil(monthStartMs(this.month + 1) - (monotonicMs + this.#offsetMs)))
  }

  /** Whether its time has been certain for long enough to delete by it. */
  isSettled(monotonicMs: number): boolean {
    return monotonicMs - this.#startedAtMs >= JUMP_HOLD_MS && this.#jump === undefined
  }

  #refresh(monotonicMs: number): void {
    if (this.#clock === undefined) this.#offsetMs = this.#published[PUBLISHED.offsetMs] as number
    else this.#followWallClock(this.#clock, monotonicMs)
    const wallMs = monotonicMs + this.#offsetMs
    this.minute = Math.floor(wallMs / MINUTE_MS)
    this.hour = Math.floor(wallMs / HOUR_MS)
    const month = monthOf(wallMs)
    if (month > this.month || month < this.month - 1) this.month = month
    if (this.#clock !== undefined) {
      this.#published[PUBLISHED.month] = this.month
      this.#published[PUBLISHED.offsetMs] = this.#offsetMs
    }
    // Months and hours begin with a minute, so an update at the start of each minute misses neither.
    this.#nextUpdateMs = monotonicMs + Math.min(UPDATE_MS, MINUTE_MS - (wallMs % MINUTE_MS))
  }

  #followWallClock(clock: Clock, monotonicMs: number): void {
    const offsetMs = clock.nowMs() - monotonicMs
    const unseenMs = monotonicMs - this.#updatedAtMs
    const toleranceMs = ADJUSTMENT_MS + unseenMs * ADJUSTMENT_RATE
    this.#updatedAtMs = monotonicMs
    const isAdjustment = Math.abs(offsetMs - this.#offsetMs) <= toleranceMs
    if (isAdjustment || this.#isCorrection(monotonicMs, offsetMs)) {
      if (!isAdjustment) this.#reportJump(offsetMs)
      this.#offsetMs = offsetMs
      this.#jump = undefined
      return
    }
    // A jump after a long time without updates may have been two, so its duration counts from now.
    const isSame = this.#jump !== undefined && Math.abs(offsetMs - this.#jump.offsetMs) <= toleranceMs
    if (this.#jump === undefined || !isSame || unseenMs > UNSEEN_MS_MAX) {
      if (!isSame) this.#reportJump(offsetMs)
      this.#jump = { offsetMs, sinceMs: monotonicMs }
      return
    }
    this.#jump.offsetMs = offsetMs
    if (monotonicMs - this.#jump.sinceMs < JUMP_HOLD_MS) return
    this.#offsetMs = offsetMs
    this.#jump = undefined
  }

  #reportJump(offsetMs: number): void {
    this.#onJump?.(Math.round(offsetMs - this.#offsetMs))
  }

  /** Whether a jump is the correction of a clock that was wrong at the start. */
  #isCorrection(monotonicMs: number, offsetMs: number): boolean {
    const recordedMs = this.#recordedMs
    if (recordedMs === undefined) return false
    const isPast = (atMs: number) => atMs < recordedMs - SKEW_MS
    // Later the record may itself be of a clock that was ahead.
    const ageMs = monotonicMs - this.#startedAtMs
    if (isPast(monotonicMs + offsetMs) || ageMs >= JUMP_HOLD_MS) return false
    const isSetBack = offsetMs < this.#offsetMs
    return isPast(monotonicMs + this.#offsetMs) || (isSetBack && ageMs < START_MS)
  }
}

export function monthOf(unixMs: number): number {
  const date = new Date(unixMs)
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth()
}

export function monthStartMs(month: number): number {
  return Date.UTC(1970, month)
}
