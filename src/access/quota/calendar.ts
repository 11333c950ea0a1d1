import type { Clock } from '../../core/clock.ts'

/** How long a jump of the wall clock must last before it is adopted. */
export const JUMP_HOLD_MS = 3_600_000
/** A smaller difference is an adjustment of the clock, not a jump. */
const ADJUSTMENT_MS = 2000
/** The largest rate error of a clock that is being adjusted. */
const ADJUSTMENT_RATE = 0.001
const UPDATE_MS = 1000
const UNSEEN_MS_MAX = 60_000
export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000

/**
 * The calendar of quota and usage: UTC months, hours and minutes of a wall clock without jumps. Between two updates it follows the monotonic clock.
 * A jump of the wall clock is adopted only after an hour, so a clock that is set wrong and corrected neither starts nor ends a month. The month
 * only moves forward: when an adopted jump back leaves it ahead by one, the current month lasts longer; a month further ahead, which only a grossly
 * wrong clock explains, is corrected.
 */
export class Calendar {
  /** Months since January 1970. */
  month: number
  /** Hours and minutes since 1970: small integers, which V8 stores without a heap number. */
  hour = 0
  minute = 0
  readonly #clock: Clock
  #offsetMs: number
  #updatedAtMs: number
  #nextUpdateMs: number
  #jump: { offsetMs: number; sinceMs: number } | undefined

  constructor(clock: Clock) {
    this.#clock = clock
    this.#updatedAtMs = clock.monotonicMs()
    this.#offsetMs = clock.nowMs() - this.#updatedAtMs
    this.#nextUpdateMs = this.#updatedAtMs
    this.month = monthOf(clock.nowMs())
    this.update(this.#updatedAtMs)
  }

  /** Updates the fields. Cheap enough for every call. */
  update(monotonicMs: number): void {
    if (monotonicMs >= this.#nextUpdateMs) this.#refresh(monotonicMs)
  }

  /** Milliseconds until the month after `month` begins. */
  untilNextMonthMs(monotonicMs: number): number {
    return Math.max(0, Math.ceil(monthStartMs(this.month + 1) - (monotonicMs + this.#offsetMs)))
  }

  #refresh(monotonicMs: number): void {
    this.#followWallClock(monotonicMs)
    const wallMs = monotonicMs + this.#offsetMs
    this.minute = Math.floor(wallMs / MINUTE_MS)
    this.hour = Math.floor(wallMs / HOUR_MS)
    const month = monthOf(wallMs)
    if (month > this.month || month < this.month - 1) this.month = month
    // Months and hours begin with a minute, so an update at the start of each minute misses neither.
    this.#nextUpdateMs = monotonicMs + Math.min(UPDATE_MS, MINUTE_MS - (wallMs % MINUTE_MS))
  }

  #followWallClock(monotonicMs: number): void {
    const offsetMs = this.#clock.nowMs() - monotonicMs
    const unseenMs = monotonicMs - this.#updatedAtMs
    const toleranceMs = ADJUSTMENT_MS + unseenMs * ADJUSTMENT_RATE
    this.#updatedAtMs = monotonicMs
    if (Math.abs(offsetMs - this.#offsetMs) <= toleranceMs) {
      this.#offsetMs = offsetMs
      this.#jump = undefined
      return
    }
    // A jump after a long time without updates may have been two, so its duration counts from now.
    const isSame = this.#jump !== undefined && Math.abs(offsetMs - this.#jump.offsetMs) <= toleranceMs
    if (this.#jump === undefined || !isSame || unseenMs > UNSEEN_MS_MAX) {
      this.#jump = { offsetMs, sinceMs: monotonicMs }
      return
    }
    this.#jump.offsetMs = offsetMs
    if (monotonicMs - this.#jump.sinceMs < JUMP_HOLD_MS) return
    this.#offsetMs = offsetMs
    this.#jump = undefined
  }
}

export function monthOf(unixMs: number): number {
  const date = new Date(unixMs)
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth()
}

export function monthStartMs(month: number): number {
  return Date.UTC(1970, month)
}
