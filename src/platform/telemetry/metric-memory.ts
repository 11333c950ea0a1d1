import assert from 'node:assert/strict'
import type { SharedNames } from './label-names.ts'

export type MetricType = 'counter' | 'gauge' | 'histogram'
/** How the values that threads have for one series of a gauge become one. Counters and histograms are summed. */
export type MergeRule = 'sum' | 'max' | 'min'

/** The values of a label in the order of their indexes; those of a changing label are in memory, after `other`. */
export type SharedLabel =
  | { readonly name: string; readonly values: readonly string[]; readonly changing?: never }
  | { readonly name: string; readonly values?: never; readonly changing: SharedNames }

/** Earlier names of a metric, by the present ones. They are printed as well, so that queries with them go on. */
export type FormerNames = {
  readonly name?: string
  readonly labels?: Readonly<Record<string, string>>
  /** Values of the renamed labels. */
  readonly values?: Readonly<Record<string, string>>
}

/** One metric of a thread, as it is sent to the main thread: what it is, and the memory with its values. */
export type SharedFamily = {
  readonly name: string
  readonly help: string
  readonly type: MetricType
  readonly merge: MergeRule
  readonly labels: readonly SharedLabel[]
  /** Empty unless it is a histogram. */
  readonly buckets: readonly number[]
  readonly former?: FormerNames | undefined
  readonly memory: SharedArrayBuffer
}
export type FamilyShape = Omit<SharedFamily, 'memory'>

export function createFamily(shape: FamilyShape): SharedFamily {
  const { bytes } = layoutOf(shape)
  return { ...shape, memory: new SharedArrayBuffer(bytes) }
}

/**
 * The values of one metric in memory that threads share. One thread writes, with plain stores; any thread reads at any time, also when the writer is blocked or
 * has ended. A value is never read half-written: it is a Float64 at a multiple of 8 bytes, which V8 loads and stores by one instruction on the 64-bit
 * processors Sluice runs on (x64, arm64), and such an access is indivisible there. This holds for access by index, not for `set`, `fill` and `slice`,
 * which may copy bytes.
 */
export class FamilyMemory {
  /** The number of series. */
  readonly size: number
  /** Values per series. Of a histogram: one count for each bound, one for values above all of them, and the sum. */
  readonly width: number
  readonly cells: Float64Array
  /** 1 for each series that scrapes include. */
  readonly used: Uint8Array
  /** Per value of the changing label: the generation for which the series count. */
  readonly generations: Int32Array
  readonly changing: { readonly names: SharedNames; readonly stride: number; readonly size: number } | undefined

  constructor(family: SharedFamily) {
    const { size, width, generationsAt, usedAt, changing } = layoutOf(family)
    this.size = size
    this.width = width
    this.cells = new Float64Array(family.memory, 0, size * width)
    this.generations = new Int32Array(family.memory, generationsAt, changing?.names.max ?? 0)
    this.used = new Uint8Array(family.memory, usedAt, size)
    this.changing = changing
  }

  clear(index: number): void {
    this.used[index] = 0
    for (let cell = index * this.width; cell < (index + 1) * this.width; cell++) this.cells[cell] = 0
  }

  /** The index of the value of the changing label that the series belongs to; -1 for `other`, and without such a label. */
  labelIndexOf(index: number): number {
    return this.changing === undefined ? -1 : (Math.floor(index / this.changing.stride) % this.changing.size) - 1
  }

  /** Sets the series of a label value to zero: from now on they count for this generation. */
  startGeneration(labelIndex: number, generation: number): void {
    for (let index = 0; index < this.size; index++) if (this.labelIndexOf(index) === labelIndex) this.clear(index)
    this.generations[labelIndex] = generation
  }
}

export function sizeOf(label: SharedLabel): number {
  return label.changing === undefined ? label.values.length : label.changing.max + 1
}

/** Two metrics can be merged if this is equal. Their lists of label values may differ. */
export function kindOf({ type, merge, labels, buckets }: FamilyShape): string {
  return JSON.stringify([type, merge, buckets, labels.map(({ name }) => name)])
}

/** Whether the two have the same series, so that one can continue in the memory of the other. */
export function isSameShape(a: FamilyShape, b: FamilyShape): boolean {
  const shapeOf = ({ name, type, labels, buckets }: FamilyShape) =>
    JSON.stringify([name, type, buckets, labels.map((label) => [label.name, label.values ?? label.changing?.max])])
  return shapeOf(a) === shapeOf(b)
}

function layoutOf({ name, labels, buckets }: FamilyShape) {
  const size = labels.reduce((product, label) => product * sizeOf(label), 1)
  const width = buckets.length === 0 ? 1 : buckets.length + 2
  const at = labels.findIndex((label) => label.changing !== undefined)
  assert(!labels.some((label, other) => label.changing !== undefined && other !== at), `${name}: two changing labels`)
  const names = labels[at]?.changing
  const stride = labels.slice(at + 1).reduce((product, label) => product * sizeOf(label), 1)
  const changing = names === undefined ? undefined : { names, stride, size: names.max + 1 }
  const generationsAt = size * width * 8
  const usedAt = generationsAt + (names?.max ?? 0) * 4
  return { size, width, changing, generationsAt, usedAt, bytes: usedAt + size }
}
