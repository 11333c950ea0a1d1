import assert from 'node:assert/strict'

export type RollingWindowOptions = {
  windowMs: number
  /** How finely the window moves: an event leaves it at most `windowMs / slots` late. */
  slots?: number
}

/** The sum of what was added during the last `windowMs`, in memory that does not depend on how much that was. */
class RollingWindow {
  readonly #slotMs: number
  readonly #sums: Float64Array
  #newestSlot: number | undefined
  #sum = 0

  constructor({ windowMs, slots = 10 }: RollingWindowOptions) {
    assert(windowMs > 0 && Number.isInteger(slots) && slots > 0, 'a window has a length and at least one slot')
    this.#slotMs = windowMs / slots
    // One more than asked: the newest slot is partly in the future, the oldest partly in the past.
    this.#sums = new Float64Array(slots + 1)
  }

  add(amount: number, monotonicMs: number): void {
    this.#moveTo(monotonicMs)
    const at = this.#at(this.#newestSlot as number)
    this.#sums[at] = (this.#sums[at] as number) + amount
    this.#sum += amount
  }

  sum(monotonicMs: number): number {
    this.#moveTo(monotonicMs)
    return this.#sum
  }

  #moveTo(monotonicMs: number): void {
    const slot = Math.floor(monotonicMs / this.#slotMs)
    if (this.#newestSlot === undefined) this.#newestSlot = slot
    const steps = Math.min(slot - this.#newestSlot, this.#sums.length)
    if (steps <= 0) return
    for (let step = 0; step < steps; step++) this.#sums[this.#at(slot - step)] = 0
    this.#newestSlot = slot
    // Summed anew whenever slots leave, so that rounding cannot add up.
    this.#sum = this.#sums.reduce((total, value) => total + value, 0)
  }

  #at(slot: number): number {
    const length = this.#sums.length
    return ((slot % length) + length) % length
  }
}

export function createRollingWindow(options: RollingWindowOptions): RollingWindow {
  return new RollingWindow(options)
}
