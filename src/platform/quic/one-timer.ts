import type { Clock, Timer } from '../../core/clock.ts'

/** The timer of a connection. It may fire early, and the callback checks the deadline again, so only an earlier deadline needs a new timer. */
export class OneTimer {
  readonly #clock: Clock
  readonly #run: () => void
  #timer: Timer | undefined
  #atMs = Number.POSITIVE_INFINITY

  constructor(clock: Clock, run: () => void) {
    this.#clock = clock
    this.#run = run
  }

  set(atMs: number, nowMs: number): void {
    if (this.#timer !== undefined && atMs >= this.#atMs) return
    this.cancel()
    this.#atMs = atMs
    this.#timer = this.#clock.setTimer(Math.max(0, Math.ceil(atMs - nowMs)), () => {
      this.#timer = undefined
      this.#run()
    })
    this.#timer.unref?.()
  }

  cancel(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }
}
