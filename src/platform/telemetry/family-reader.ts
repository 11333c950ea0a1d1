import { LabelNames } from './label-names.ts'
import { FamilyMemory, kindOf, type SharedFamily, type SharedLabel, sizeOf } from './metric-memory.ts'
import { OTHER } from './metric-series.ts'

/** The series of one metric in one thread, read at one time. */
export type FamilyReading = {
  /** For each label the value at each index; undefined where there is none now. */
  readonly labels: readonly LabelTexts[]
  readonly series: readonly { readonly index: number; readonly cells: readonly number[] }[]
}
type LabelTexts = readonly (string | undefined)[]
type Labels = Readonly<Record<string, string>> | undefined

/** Reads the memory of a metric, of this thread or of another one. Never returns a value under a label that it was not counted for. */
export class FamilyReader {
  readonly family: SharedFamily
  readonly kind: string
  /** Evaluates the metric if it is one that is read; only in its own thread. */
  readonly refresh: () => void
  readonly #memory: FamilyMemory
  readonly #names: LabelNames | undefined
  /** The label values of a metric without a changing label. */
  readonly #fixed: readonly LabelTexts[]
  /** Used while the names are being changed: counters must not be missing from a scrape and return with the next. */
  #last: FamilyReading

  constructor(family: SharedFamily, refresh: () => void = () => {}) {
    this.family = family
    this.kind = kindOf(family)
    this.refresh = refresh
    this.#memory = new FamilyMemory(family)
    this.#names = this.#memory.changing && new LabelNames(this.#memory.changing.names)
    this.#fixed = family.labels.map((label) => label.values ?? [])
    this.#last = { labels: family.labels.map(() => []), series: [] }
  }

  /** The label values of now, by the order of the labels. */
  labels(): readonly LabelTexts[] {
    if (this.#names === undefined) return this.#labels()
    return this.#names.readStable(() => this.#labels()) ?? this.#last.labels
  }

  read(): FamilyReading {
    this.refresh()
    if (this.#names === undefined) return this.#read()
    this.#last = this.#names.readStable(() => this.#read()) ?? this.#last
    return this.#last
  }

  /** The values of the series with exactly these label values; a missing label counts as `other`. */
  cellsAt(labels: Labels): readonly number[] | undefined {
    this.refresh()
    if (this.#names === undefined) return this.#cellsAt(labels)
    const found = this.#names.readStable(() => ({ cells: this.#cellsAt(labels) }))
    if (found !== undefined) return found.cells
    const index = this.#indexIn(this.#last.labels, labels)
    return this.#last.series.find((one) => one.index === index)?.cells
  }

  /** The index of the series with exactly these label values; -1 where there is none. For the thread that writes the metric. */
  indexOf(labels: Labels): number {
    return this.#indexIn(this.#labels(), labels)
  }

  #indexIn(all: readonly LabelTexts[], labels: Labels): number {
    let index = 0
    for (let at = 0; at < all.length; at++) {
      const texts = all[at] as LabelTexts
      const part = texts.indexOf(labels?.[this.family.labels[at]?.name as string] ?? OTHER)
      if (part === -1) return -1
      index = index * texts.length + part
    }
    return index
  }

  #cellsAt(labels: Labels): readonly number[] | undefined {
    const index = this.indexOf(labels)
    return index !== -1 && this.#isShown(index) ? this.#cellsOf(index) : undefined
  }

  #labels(): readonly LabelTexts[] {
    return this.#names === undefined ? this.#fixed : this.family.labels.map((label) => this.#textsOf(label))
  }

  #textsOf(label: SharedLabel): LabelTexts {
    if (label.changing === undefined) return label.values
    return Array.from({ length: sizeOf(label) }, (_, at) => (at === 0 ? OTHER : this.#names?.nameAt(at - 1)))
  }

  #read(): FamilyReading {
    const labels = this.#labels()
    const series = []
    for (let index = 0; index < this.#memory.size; index++) {
      if (this.#isShown(index)) series.push({ index, cells: this.#cellsOf(index) })
    }
    return { labels, series }
  }

  #isShown(index: number): boolean {
    if (this.#memory.used[index] !== 1) return false
    const labelIndex = this.#memory.labelIndexOf(index)
    if (labelIndex === -1 || this.#names === undefined) return true
    return (
      this.#names.isAssigned(labelIndex) &&
      this.#memory.generations[labelIndex] === this.#names.generationOf(labelIndex)
    )
  }

  #cellsOf(index: number): number[] {
    const { cells, width } = this.#memory
    const values: number[] = []
    for (let at = index * width; at < (index + 1) * width; at++) values.push(cells[at] as number)
    return values
  }
}
