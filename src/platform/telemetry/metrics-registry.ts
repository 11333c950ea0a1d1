import assert from 'node:assert/strict'
import { ChangingLabel } from './changing-label.ts'
import { FamilyReader } from './family-reader.ts'
import { openFamily } from './metric-family.ts'
import type { FamilyMemory, FormerNames, MergeRule, MetricType, SharedFamily } from './metric-memory.ts'
import { type LabelLists, type LabelValues, MetricSeries, OTHER } from './metric-series.ts'
import { createMetricsView, type FamilyReaders, type MetricsView } from './metrics-view.ts'

export type Counter<Lists extends LabelLists = LabelLists> = {
  inc(labels?: LabelValues<Lists>, by?: number): void
  /** The counter of one combination, for hot paths. */
  with(labels: LabelValues<Lists>): { inc(by?: number): void }
}
export type Gauge<Lists extends LabelLists = LabelLists> = {
  set(value: number, labels?: LabelValues<Lists>): void
  inc(labels?: LabelValues<Lists>, by?: number): void
  dec(labels?: LabelValues<Lists>, by?: number): void
  with(labels: LabelValues<Lists>): { set(value: number): void; inc(by?: number): void; dec(by?: number): void }
}
export type Histogram<Lists extends LabelLists = LabelLists> = {
  observe(value: number, labels?: LabelValues<Lists>): void
  with(labels: LabelValues<Lists>): { observe(value: number): void }
  /** Adds what was counted elsewhere: so many in each bucket, the last one above all bounds, and the sum of the values. */
  add(counts: readonly number[], sum: number, labels?: LabelValues<Lists>): void
}

/** With `read` the value is read at each scrape instead of being set. Such a metric has no labels. */
export type NumberOptions<Lists extends LabelLists> = { labels?: Lists; read?: () => number; former?: FormerNames }
/** `merge` is what a process shows where several of its threads have the gauge; `sum` by default. */
export type GaugeOptions<Lists extends LabelLists> = NumberOptions<Lists> & { merge?: MergeRule }
export type HistogramOptions<Lists extends LabelLists> = {
  labels?: Lists
  buckets: readonly number[]
  former?: FormerNames
}

type None = Record<never, never>

export type MetricsRegistry = Disposable &
  MetricsView & {
    counter<const Lists extends LabelLists = None>(
      name: string,
      help: string,
      options?: NumberOptions<Lists>,
    ): Counter<Lists>
    gauge<const Lists extends LabelLists = None>(
      name: string,
      help: string,
      options?: GaugeOptions<Lists>,
    ): Gauge<Lists>
    histogram<const Lists extends LabelLists = None>(
      name: string,
      help: string,
      options: HistogramOptions<Lists>,
    ): Histogram<Lists>
    /** A label whose values come and go, at most `max` at once. */
    changingLabel(name: string, max: number): ChangingLabel
    /**
     * Evaluates the metrics that are read, for the threads that see only the memory. Called repeatedly by a thread from when its services have started: label
     * values that only its former instance used end with the first call.
     */
    refresh(): void
    /** The metrics, to be merged with those of other threads. */
    readonly readers: FamilyReaders
  }

export type MetricsRegistryOptions = {
  /** Shown as labels of `sluice_build_info`. */
  build?: { version: string }
  /** For a thread whose metrics the main thread serves. */
  shared?: {
    /** Called for each metric that has new memory; a copy of the argument can be sent to another thread. */
    onFamily(family: SharedFamily): void
    /** The metrics of the thread's former instance, by name: the counts continue in their memory. No other thread writes there. */
    previous?: ReadonlyMap<string, SharedFamily>
  }
}

const NAME = /^sluice_[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/
/** Endings that the format reserves for the parts of a histogram. */
const RESERVED_ENDING = /_(?:bucket|sum|count)$/
const LABEL = /^[a-z][a-z0-9_]*$/
/** Counters with one label of at most this many values show each at zero from the start, so that rates begin there. */
const ZEROS_SHOWN_MAX = 32

/** The values are in memory that other threads can read (`metric-memory.ts`); prom-client only prints them. */
export function createMetricsRegistry({ build, shared }: MetricsRegistryOptions = {}): MetricsRegistry {
  const readers = new Map<string, FamilyReader>()
  const labels = new Map<string, ChangingLabel>()

  type Spec<Lists extends LabelLists> = {
    readonly type: MetricType
    readonly name: string
    readonly help: string
    readonly labels: Lists | undefined
    readonly merge?: MergeRule | undefined
    readonly buckets?: readonly number[]
    readonly read?: (() => number) | undefined
    readonly former?: FormerNames | undefined
  }

  function add<Lists extends LabelLists>(spec: Spec<Lists>): { series: MetricSeries<Lists>; memory: FamilyMemory } {
    const { type, name, help, merge = 'sum', buckets = [], read, former } = spec
    checkNames(spec)
    assert(!readers.has(name), `${name} is registered twice`)
    const series = new MetricSeries(spec.labels ?? ({} as Lists))
    const shape = { type, name, help, merge, buckets, former, labels: series.shared }
    const label = Object.values(spec.labels ?? {}).find((list) => list instanceof ChangingLabel)
    const { family, memory, isContinued } = openFamily(shape, label, shared?.previous?.get(name))
    if (read) assert(series.labelNames.length === 0, `${name}: a metric that is read has no labels`)
    const refresh = read && (type === 'counter' ? createTotal(memory, read) : () => void (memory.cells[0] = read()))
    // A reader that needs what is not created yet fails here, at every start, and not at the first scrape that comes early.
    refresh?.()
    if (series.labelNames.length === 0) memory.used[0] = 1
    readers.set(name, new FamilyReader(family, refresh))
    if (!isContinued) shared?.onFamily(family)
    return { series, memory }
  }

  const registry: MetricsRegistry = {
    counter(name, help, options) {
      const { labels: lists, read, former } = options ?? {}
      const spec = { type: 'counter', name, help, labels: lists, read, former } as const
      const { series, memory } = add(spec)
      const { cells, used } = memory
      if (series.labelNames.length === 1 && memory.size <= ZEROS_SHOWN_MAX) useListed(spec.labels, series, used)
      const incAt = (index: number, by: number) => {
        // Checked first: assert() builds its message in any case, and this runs ten times per call.
        if (!(by >= 0)) assert.fail(`${name}: a counter only grows`)
        cells[index] = (cells[index] as number) + by
        used[index] = 1
      }
      return {
        inc: (labels, by = 1) => incAt(series.find(labels), by),
        with(labels) {
          const index = series.find(labels)
          return { inc: (by = 1) => incAt(index, by) }
        },
      }
    },

    gauge(name, help, options) {
      const { labels, read, merge, former } = options ?? {}
      const { series, memory } = add({ type: 'gauge', name, help, labels, read, merge, former })
      const { cells, used } = memory
      const setAt = (index: number, value: number) => {
        cells[index] = value
        used[index] = 1
      }
      const incAt = (index: number, by: number) => setAt(index, (cells[index] as number) + by)
      return {
        set: (value, labels) => setAt(series.find(labels), value),
        inc: (labels, by = 1) => incAt(series.find(labels), by),
        dec: (labels, by = 1) => incAt(series.find(labels), -by),
        with(labels) {
          const index = series.find(labels)
          return {
            set: (value) => setAt(index, value),
            inc: (by = 1) => incAt(index, by),
            dec: (by = 1) => incAt(index, -by),
          }
        },
      }
    },

    histogram(name, help, { labels, buckets, former }) {
      checkBuckets(name, buckets)
      const { series, memory } = add({ type: 'histogram', name, help, labels, buckets: [...buckets], former })
      const { cells, used, width } = memory
      const bounds = Float64Array.from(buckets)
      const observeAt = (index: number, value: number) => {
        if (Number.isNaN(value)) assert.fail(`${name}: not a number`)
        let at = 0
        while (at < bounds.length && value > (bounds[at] as number)) at += 1
        const cell = index * width + at
        const sum = index * width + width - 1
        cells[cell] = (cells[cell] as number) + 1
        cells[sum] = (cells[sum] as number) + value
        used[index] = 1
      }
      return {
        observe: (value, labels) => observeAt(series.find(labels), value),
        add(counts, sum, labels) {
          const from = series.find(labels) * width
          counts.forEach((count, at) => {
            cells[from + at] = (cells[from + at] as number) + count
          })
          cells[from + width - 1] = (cells[from + width - 1] as number) + sum
          used[series.find(labels)] = 1
        },
        with(labels) {
          const index = series.find(labels)
          return { observe: (value) => observeAt(index, value) }
        },
      }
    },

    changingLabel(name, max) {
      assert(!labels.has(name), `the label ${name} is created twice`)
      const all = [...(shared?.previous?.values() ?? [])].flatMap((family) => family.labels)
      const label = new ChangingLabel(max, all.find((one) => one.name === name)?.changing)
      labels.set(name, label)
      return label
    },

    refresh() {
      for (const reader of readers.values()) reader.refresh()
      for (const label of labels.values()) label.dropUnclaimed()
    },
    readers,
    ...createMetricsView(() => [readers]),
    [Symbol.dispose]() {},
  }

  if (build) {
    const labels = { version: [build.version], node: [process.version] }
    const options = { labels, merge: 'max' } as const
    const info = registry.gauge('sluice_build_info', 'Always 1; its labels name the build.', options)
    info.set(1, { version: build.version, node: process.version })
  }
  return registry
}

function checkNames(spec: { type: MetricType; name: string; help: string; labels: LabelLists | undefined }): void {
  const { type, name, help, labels = {} } = spec
  assert(NAME.test(name), `${name}: names are sluice_<area>_<what>_<unit>`)
  assert(help.trim() !== '', `${name}: a metric needs a help text`)
  assert(name.endsWith('_total') === (type === 'counter'), `${name}: counters, and only they, end in _total`)
  assert(!RESERVED_ENDING.test(name), `${name}: this ending belongs to histograms`)
  for (const label of Object.keys(labels)) {
    assert(LABEL.test(label) && label !== 'le' && label !== 'quantile', `${name}: ${label} cannot be a label`)
  }
}

function checkBuckets(name: string, buckets: readonly number[]): void {
  assert(buckets.length > 0, `${name}: a histogram needs buckets`)
  assert(
    buckets.every((bound, at) => at === 0 || bound > (buckets[at - 1] as number)),
    `${name}: buckets must rise`,
  )
}

/** Includes every listed value, except `other`. Those of a changing label are not known yet. */
function useListed<Lists extends LabelLists>(
  lists: Lists | undefined,
  series: MetricSeries<Lists>,
  used: Uint8Array,
): void {
  const [list = []] = Object.values(lists ?? {})
  if (list instanceof ChangingLabel) return
  for (const value of list) {
    const labels = { [series.labelNames[0] as string]: value } as LabelValues<Lists>
    if (value !== OTHER) used[series.find(labels)] = 1
  }
}

/** A counter that is read goes on from where it was when its source begins at zero again, in this instance of the thread or in the next. */
function createTotal({ cells }: FamilyMemory, read: () => number): () => void {
  let before = cells[0] as number
  let last = 0
  return () => {
    const now = read()
    if (now < last) before += last
    last = now
    cells[0] = before + now
  }
}
