const CONTROL_WINDOW_MS = 1000

/** Counts pings and pongs of a client in windows of a second. */
export class ControlRate {
  readonly #perSecondMax: number
  #windowFromMs: number
  #count = 0

  constructor(perSecondMax: number, nowMs: number) {
    this.#perSecondMax = perSecondMax
    this.#windowFromMs = nowMs
  }

  admit(nowMs: number): boolean {
    if (nowMs - this.#windowFromMs >= CONTROL_WINDOW_MS) {
      this.#windowFromMs = nowMs
      this.#count = 0
    }
    this.#count += 1
    return this.#count <= this.#perSecondMax
  }
}
