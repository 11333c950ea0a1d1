import type { Clock } from '../../core/clock.ts'

/** How long the wall clock has to stand by a jump before the jump is believed. */
export const JUMP_HOLD_MS = 3_600_000
/** Less than this is the clock being adjusted, not set. */
const ADJUSTMENT_MS = 2000
/** A clock that is being adjusted runs at most this much too fast or too slow. */
const ADJUSTMENT_RATE = 0.001
const LOOK_MS = 1000
const UNSEEN_MS_MAX = 60_000
export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000

/**
 * The calendar that quota and usage go by: UTC months, hours and minutes of a wall clock that does not jump. Between two looks it runs on the
 * monotonic clock. A jump of the wall clock is taken over only after it stood for an hour, so a clock set wrong and set right again neither
 * starts a month nor ends one. The month goes forward only: where a believed jump back leaves it ahead by one, the month in hand simply lasts
 * longer; only a month further ahead, which a grossly wrong clock alone explains, is given up.
 */
export class Calendar {
  /** Months since January 1970. */
  month: number
  /** Hours and minutes since 1970: small whole numbers, which cost nothing to keep by the thousand. */
  hour = 0
  minute = 0
  readonly #clock: Clock
  #offsetMs: number
  #lookedAtMs: number
  #lookAgainAtMs: number
  #jump: { offsetMs: number; sinceMs: number } | undefined

  constructor(clock: Clock) {
    this.#clock = clock
    this.#lookedAtMs = clock.monotonicMs()
    this.#offsetMs = clock.nowMs() - this.#lookedAtMs
    this.#lookAgainAtMs = this.#lookedAtMs
    this.month = monthOf(clock.nowMs())
    this.look(this.#lookedAtMs)
  }

  /** Brings the fields up to date. Cheap enough for every call. */
  look(monotonicMs: number): void {
    if (monotonicMs >= this.#lookAgainAtMs) this.#turn(monotonicMs)
  }

  /** Milliseconds until the month after `month` begins. */
  untilNextMonthMs(monotonicMs: number): number {
    return Math.max(0, Math.ceil(monthStartMs(this.month + 1) - (monotonicMs + this.#offsetMs)))
  }

  #turn(monotonicMs: number): void {
    this.#follow(monotonicMs)
    const wallMs = monotonicMs + this.#offsetMs
    this.minute = Math.floor(wallMs / MINUTE_MS)
    this.hour = Math.floor(wallMs / HOUR_MS)
    const month = monthOf(wallMs)
    if (month > this.month || month < this.month - 1) this.month = month
    // Months and hours begin with a minute, so a look at each minute's first instant misses neither.
    this.#lookAgainAtMs = monotonicMs + Math.min(LOOK_MS, MINUTE_MS - (wallMs % MINUTE_MS))
  }

  #follow(monotonicMs: number): void {
    const offsetMs = this.#clock.nowMs() - monotonicMs
    const unseenMs = monotonicMs - this.#lookedAtMs
    const toleranceMs = ADJUSTMENT_MS + unseenMs * ADJUSTMENT_RATE
    this.#lookedAtMs = monotonicMs
    if (Math.abs(offsetMs - this.#offsetMs) <= toleranceMs) {
      this.#offsetMs = offsetMs
      this.#jump = undefined
      return
    }
    // A jump that nobody watched may have been two; it stands from now.
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
