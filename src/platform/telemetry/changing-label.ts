/**
 * Label values that come and go while the process runs, at most `max` at once, such as the nodes of a reloaded configuration. A value that is
 * released by all its users takes its series with it.
 */
export class ChangingLabel {
  readonly max: number
  /** A free slot is undefined. */
  readonly #slots: (string | undefined)[]
  readonly #users = new Map<string, number>()
  readonly #listeners: ((slot: number) => void)[] = []

  constructor(max: number) {
    this.max = max
    this.#slots = Array.from({ length: max })
  }

  get values(): string[] {
    return this.#slots.filter((value) => value !== undefined)
  }

  valueAt(slot: number): string | undefined {
    return this.#slots[slot]
  }

  /** -1 where the value has no slot: it then counts as `other`. */
  slotOf(value: string): number {
    return this.#users.has(value) ? this.#slots.indexOf(value) : -1
  }

  acquire(value: string): void {
    const users = this.#users.get(value) ?? 0
    this.#users.set(value, users + 1)
    if (users > 0) return
    const free = this.#slots.indexOf(undefined)
    if (free !== -1) this.#slots[free] = value
  }

  release(value: string): void {
    const users = this.#users.get(value) ?? 0
    if (users > 1) return void this.#users.set(value, users - 1)
    const slot = this.slotOf(value)
    this.#users.delete(value)
    if (slot === -1) return
    this.#slots[slot] = undefined
    for (const listener of this.#listeners) listener(slot)
  }

  onFreed(listener: (slot: number) => void): void {
    this.#listeners.push(listener)
  }
}
