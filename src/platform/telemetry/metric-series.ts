import { ChangingLabel } from './changing-label.ts'

/** Label names with the values each may take. Values outside the list are counted as `other`. */
export type LabelLists = Readonly<Record<string, readonly string[] | ChangingLabel>>
export type LabelValues<Lists extends LabelLists> = { readonly [Name in keyof Lists]?: string | undefined }

export const OTHER = 'other'

/**
 * The series of one metric: one index for each combination of label values. The lists are closed, so the number of combinations is known at the start: an
 * index is found by one look-up per label, and no caller can add one.
 */
export class MetricSeries<Lists extends LabelLists> {
  readonly labelNames: readonly string[]
  readonly #labels: readonly Label[]
  readonly #used: Uint8Array
  readonly size: number

  constructor(lists: Lists) {
    this.labelNames = Object.keys(lists)
    this.#labels = Object.values(lists).map((list) =>
      list instanceof ChangingLabel ? changingLabel(list) : fixedLabel(list),
    )
    this.size = this.#labels.reduce((product, { size }) => product * size, 1)
    this.#used = new Uint8Array(this.size)
    if (this.labelNames.length === 0) this.#used.fill(1)
  }

  /** The values that each label can have now. */
  get labelValues(): string[][] {
    return this.#labels.map(({ values }) => values())
  }

  /** The index of the series with these label values. A missing label counts as `other`. */
  find(labels: LabelValues<Lists> | undefined): number {
    let index = 0
    for (let at = 0; at < this.labelNames.length; at++) {
      const { size, indexOf } = this.#labels[at] as Label
      index = index * size + indexOf(labels?.[this.labelNames[at] as keyof Lists] ?? OTHER)
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

  /** Calls the listener for each series whose label value was removed, and excludes the series from scrapes. */
  onFreed(listener: (index: number) => void): void {
    for (const [at, label] of this.#labels.entries()) {
      label.onFreed?.((freed) => {
        for (let index = 0; index < this.size; index++) {
          if (this.#partsOf(index)[at] !== freed) continue
          this.#used[index] = 0
          listener(index)
        }
      })
    }
  }

  *used(): Generator<{ index: number; labels: Record<string, string> }> {
    for (const entry of this.#walk()) {
      if (this.#used[entry.index] === 1) yield entry
    }
  }

  *#walk(): Generator<{ index: number; labels: Record<string, string> }> {
    for (let index = 0; index < this.size; index++) {
      const values = this.#partsOf(index).map((part, at) => this.#labels[at]?.valueAt(part))
      if (values.includes(undefined)) continue
      yield { index, labels: Object.fromEntries(this.labelNames.map((name, at) => [name, values[at] as string])) }
    }
  }

  /** For each label the index of its value. */
  #partsOf(index: number): number[] {
    const parts: number[] = []
    let rest = index
    for (const { size } of this.#labels.toReversed()) {
      parts.unshift(rest % size)
      rest = Math.floor(rest / size)
    }
    return parts
  }
}

type Label = {
  readonly size: number
  values(): string[]
  valueAt(index: number): string | undefined
  indexOf(value: string): number
  onFreed?(listener: (index: number) => void): void
}

function fixedLabel(listed: readonly string[]): Label {
  const values = listed.includes(OTHER) ? listed : [...listed, OTHER]
  const indexes = new Map(values.map((value, at) => [value, at]))
  const other = indexes.get(OTHER) as number
  return {
    size: values.length,
    values: () => [...values],
    valueAt: (index) => values[index],
    indexOf: (value) => indexes.get(value) ?? other,
  }
}

/** `other` comes first: the slots follow it. */
function changingLabel(label: ChangingLabel): Label {
  return {
    size: label.max + 1,
    values: () => [...label.values, OTHER],
    valueAt: (index) => (index === 0 ? OTHER : label.valueAt(index - 1)),
    indexOf: (value) => label.slotOf(value) + 1,
    onFreed: (listener) => label.onFreed((slot) => listener(slot + 1)),
  }
}
