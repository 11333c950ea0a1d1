import { ChangingLabel } from './changing-label.ts'
import type { SharedLabel } from './metric-memory.ts'

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

  constructor(lists: Lists) {
    this.labelNames = Object.keys(lists)
    this.#labels = Object.entries(lists).map(([name, list]) =>
      list instanceof ChangingLabel ? changingLabel(name, list) : fixedLabel(name, list),
    )
  }

  get shared(): SharedLabel[] {
    return this.#labels.map(({ shared }) => shared)
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
}

type Label = { readonly size: number; readonly shared: SharedLabel; indexOf(value: string): number }

function fixedLabel(name: string, listed: readonly string[]): Label {
  const values = listed.includes(OTHER) ? listed : [...listed, OTHER]
  const indexes = new Map(values.map((value, at) => [value, at]))
  const other = indexes.get(OTHER) as number
  return { size: values.length, shared: { name, values }, indexOf: (value) => indexes.get(value) ?? other }
}

/** `other` comes first: the values of the label follow it. */
function changingLabel(name: string, label: ChangingLabel): Label {
  return {
    size: label.max + 1,
    shared: { name, changing: label.shared },
    indexOf: (value) => label.indexOf(value) + 1,
  }
}
