import { createSharedNames, LabelNames, type SharedNames } from './label-names.ts'

/**
 * Label values that come and go while the process runs, at most `max` at once, such as the nodes of a reloaded configuration. A value that is
 * released by all its users takes its series with it. Created by the registry (`changingLabel`), which gives it the memory of the thread's former instance.
 */
export class ChangingLabel {
  readonly max: number
  readonly shared: SharedNames
  readonly names: LabelNames
  /** What the memory contains; a free slot is undefined. */
  readonly #slots: (string | undefined)[]
  readonly #users = new Map<string, number>()
  /** Values of the former instance that this one does not use (yet). Their counts go on if it does. */
  readonly #unclaimed: Set<string>
  readonly #listeners: ((slot: number) => void)[] = []

  constructor(max: number, previous?: SharedNames) {
    this.max = max
    this.shared = previous?.max === max ? previous : createSharedNames(max)
    this.names = new LabelNames(this.shared)
    this.names.endChange()
    this.#slots = Array.from({ length: max }, (_, slot) => this.names.nameAt(slot))
    this.#unclaimed = new Set(this.#slots.filter((value) => value !== undefined))
  }

  /** -1 where the value has no slot: it then counts as `other`. */
  slotOf(value: string): number {
    return this.#users.has(value) ? this.#slots.indexOf(value) : -1
  }

  acquire(value: string): void {
    const users = this.#users.get(value) ?? 0
    this.#users.set(value, users + 1)
    if (users > 0 || this.#unclaimed.delete(value) || !LabelNames.fits(value)) return
    const slot = this.#freeSlot()
    if (slot !== -1) this.#assign(slot, value)
  }

  release(value: string): void {
    const users = this.#users.get(value) ?? 0
    if (users > 1) return void this.#users.set(value, users - 1)
    const slot = this.slotOf(value)
    this.#users.delete(value)
    if (slot !== -1) this.#assign(slot, undefined)
  }

  /** Ends the series of values that only the former instance used. */
  dropUnclaimed(): void {
    for (const value of this.#unclaimed) this.#assign(this.#slots.indexOf(value), undefined)
    this.#unclaimed.clear()
  }

  /** The listener sets the series of the slot to zero: a value has got it. Other threads see the value and the zeros at the same time. */
  onAssigned(listener: (slot: number) => void): void {
    this.#listeners.push(listener)
  }

  #freeSlot(): number {
    const free = this.#slots.indexOf(undefined)
    if (free !== -1) return free
    const [unclaimed] = this.#unclaimed
    if (unclaimed === undefined) return -1
    this.#unclaimed.delete(unclaimed)
    return this.#slots.indexOf(unclaimed)
  }

  #assign(slot: number, value: string | undefined): void {
    this.#slots[slot] = value
    this.names.change(() => {
      this.names.assign(slot, value)
      if (value !== undefined) for (const listener of this.#listeners) listener(slot)
    })
  }
}
