import { createSharedNames, LabelNames, type SharedNames } from './label-names.ts'

/**
 * Label values that come and go while the process runs, at most `max` at once, such as the nodes of a reloaded configuration. A value that is
 * released by all its users takes its series with it. Created by the registry (`changingLabel`), which gives it the memory of the thread's former instance.
 */
export class ChangingLabel {
  readonly max: number
  readonly shared: SharedNames
  readonly names: LabelNames
  /** What the memory contains; a free index is undefined. */
  readonly #values: (string | undefined)[]
  readonly #users = new Map<string, number>()
  /** Values of the former instance that this one does not use (yet). Their counts go on if it does. */
  readonly #unclaimed: Set<string>
  readonly #listeners: ((index: number) => void)[] = []

  constructor(max: number, previous?: SharedNames) {
    this.max = max
    this.shared = previous?.max === max ? previous : createSharedNames(max)
    this.names = new LabelNames(this.shared)
    this.names.endChange()
    this.#values = Array.from({ length: max }, (_, index) => this.names.nameAt(index))
    this.#unclaimed = new Set(this.#values.filter((value) => value !== undefined))
  }

  /** -1 where the value has no index: it then counts as `other`. */
  indexOf(value: string): number {
    return this.#users.has(value) ? this.#values.indexOf(value) : -1
  }

  acquire(value: string): void {
    const users = this.#users.get(value) ?? 0
    this.#users.set(value, users + 1)
    if (users > 0 || this.#unclaimed.delete(value) || !LabelNames.fits(value)) return
    const index = this.#freeIndex()
    if (index !== -1) this.#assign(index, value)
  }

  release(value: string): void {
    const users = this.#users.get(value) ?? 0
    if (users > 1) return void this.#users.set(value, users - 1)
    const index = this.indexOf(value)
    this.#users.delete(value)
    if (index !== -1) this.#assign(index, undefined)
  }

  /** Ends the series of values that only the former instance used. */
  dropUnclaimed(): void {
    for (const value of this.#unclaimed) this.#assign(this.#values.indexOf(value), undefined)
    this.#unclaimed.clear()
  }

  /** The listener sets the series at the index to zero: a value has got it. Other threads see the value and the zeros at the same time. */
  onAssigned(listener: (index: number) => void): void {
    this.#listeners.push(listener)
  }

  #freeIndex(): number {
    const free = this.#values.indexOf(undefined)
    if (free !== -1) return free
    const [unclaimed] = this.#unclaimed
    if (unclaimed === undefined) return -1
    this.#unclaimed.delete(unclaimed)
    return this.#values.indexOf(unclaimed)
  }

  #assign(index: number, value: string | undefined): void {
    this.#values[index] = value
    this.names.change(() => {
      this.names.assign(index, value)
      if (value !== undefined) for (const listener of this.#listeners) listener(index)
    })
  }
}
