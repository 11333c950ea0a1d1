/** Label names with the values each may take. Values outside the list are counted as `other`. */
export type LabelLists = Readonly<Record<string, readonly string[]>>
export type LabelValues<Lists extends LabelLists> = { readonly [Name in keyof Lists]?: string | undefined }

export const OTHER = 'other'

/**
 * The series of one metric: one index for each combination of label values. The lists are closed, so all combinations are known at the start: an
 * index is found by one look-up per label, and no caller can add one.
 */
export class MetricSeries<Lists extends LabelLists> {
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

  /** The index of the series with these label values. A missing label counts as `other`. */
  find(labels: LabelValues<Lists> | undefined): number {
    let index = 0
    for (let at = 0; at < this.labelNames.length; at++) {
      const values = this.#indexes[at] as ReadonlyMap<string, number>
      const value = labels?.[this.labelNames[at] as keyof Lists] ?? OTHER
      index = index * values.size + (values.get(value) ?? (values.get(OTHER) as number))
    }
    return index
  }

  /** Includes the series in scrapes. */
  use(index: number): void {
    this.#used[index] = 1
  }

  isUsed(index: number): boolean {
    return this.#used[index] === 1
  }

  /** Includes every listed value, except `other`. */
  useListed(): void {
    for (const { index, labels } of this.#walk()) {
      if (!Object.values(labels).includes(OTHER)) this.#used[index] = 1
    }
  }

  *used(): Generator<{ index: number; labels: Record<string, string> }> {
    for (const entry of this.#walk()) {
      if (this.#used[entry.index] === 1) yield entry
    }
  }

  *#walk(): Generator<{ index: number; labels: Record<string, string> }> {
    for (let index = 0; index < this.size; index++) {
      const pairs: [string, string][] = []
      let rest = index
      for (let at = this.labelNames.length - 1; at >= 0; at--) {
        const values = this.labelValues[at] as readonly string[]
        pairs.unshift([this.labelNames[at] as string, values[rest % values.length] as string])
        rest = Math.floor(rest / values.length)
      }
      yield { index, labels: Object.fromEntries(pairs) }
    }
  }
}
