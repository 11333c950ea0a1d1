/** Label names with the values each may take. Values outside the list are counted as `other`. */
export type LabelLists = Readonly<Record<string, readonly string[]>>
export type LabelValues<Lists extends LabelLists> = { readonly [Name in keyof Lists]?: string | undefined }

export const OTHER = 'other'

/**
 * One number, or a few, for each combination of label values. As the lists are closed the combinations are known at
 * once: a slot is found by two look-ups and an addition, and no caller can make a new one.
 */
export class MetricSlots<Lists extends LabelLists> {
  readonly labelNames: readonly string[]
  readonly labelValues: readonly (readonly string[])[]
  readonly #indexes: readonly ReadonlyMap<string, number>[]
  readonly #used: Uint8Array
  readonly size: number

  constructor(lists: Lists) {
    this.labelNames = Object.keys(lists)
    this.labelValues = Object.values(lists).map((values) => (values.includes(OTHER) ? values : [...values, OTHER]))
    this.#indexes = this.labelValues.map((values) => new Map(values.map((value, at) => [value, at])))
    this.size = this.labelValues.reduce((product, values) => product * values.length, 1)
    this.#used = new Uint8Array(this.size)
    if (this.labelNames.length === 0) this.#used.fill(1)
  }

  /** The slot of these label values. A missing label counts as `other`. */
  find(labels: LabelValues<Lists> | undefined): number {
    let slot = 0
    for (let at = 0; at < this.labelNames.length; at++) {
      const index = this.#indexes[at] as ReadonlyMap<string, number>
      const value = labels?.[this.labelNames[at] as keyof Lists] ?? OTHER
      slot = slot * index.size + (index.get(value) ?? (index.get(OTHER) as number))
    }
    return slot
  }

  /** Marks the slot as one to be shown. */
  use(slot: number): void {
    this.#used[slot] = 1
  }

  isUsed(slot: number): boolean {
    return this.#used[slot] === 1
  }

  /** Shows every listed value from the start, except the catch-all. */
  useListed(): void {
    for (const { slot, labels } of this.#walk()) {
      if (!Object.values(labels).includes(OTHER)) this.#used[slot] = 1
    }
  }

  *used(): Generator<{ slot: number; labels: Record<string, string> }> {
    for (const entry of this.#walk()) {
      if (this.#used[entry.slot] === 1) yield entry
    }
  }

  *#walk(): Generator<{ slot: number; labels: Record<string, string> }> {
    for (let slot = 0; slot < this.size; slot++) {
      const pairs: [string, string][] = []
      let rest = slot
      for (let at = this.labelNames.length - 1; at >= 0; at--) {
        const values = this.labelValues[at] as readonly string[]
        pairs.unshift([this.labelNames[at] as string, values[rest % values.length] as string])
        rest = Math.floor(rest / values.length)
      }
      yield { slot, labels: Object.fromEntries(pairs) }
    }
  }
}
