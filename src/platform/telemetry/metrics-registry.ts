import assert from 'node:assert/strict'
import { type Metric as PrometheusMetric, Registry, type RegistryContentType } from 'prom-client'
import {
  type CounterSpec,
  type Family,
  type GaugeSpec,
  type HistogramSpec,
  histogramFamily,
  type MetricDescription,
  numberFamily,
} from './metric-family.ts'
import type { LabelLists, LabelValues } from './metric-series.ts'
import { addProcessMetrics } from './process-metrics.ts'

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
}

export type MetricsFormat = 'prometheus' | 'openmetrics'

export type MetricsRegistry = Disposable & {
  counter<const Lists extends LabelLists = Record<never, never>>(spec: CounterSpec<Lists>): Counter<Lists>
  gauge<const Lists extends LabelLists = Record<never, never>>(spec: GaugeSpec<Lists>): Gauge<Lists>
  histogram<const Lists extends LabelLists = Record<never, never>>(spec: HistogramSpec<Lists>): Histogram<Lists>
  /** Everything, or the metrics that are shown, by name. */
  text(format?: MetricsFormat, isShown?: (name: string) => boolean): Promise<string>
  contentType(format?: MetricsFormat): string
  /** Every metric, for generated documents and for the test of the dashboards. */
  describe(): MetricDescription[]
  /** The present value of one series (the count, for a histogram); undefined when it has none yet. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined
}

export type MetricsRegistryOptions = {
  /** Memory, processor time, descriptors and event-loop delay of this process. */
  processMetrics?: boolean
  /** Shown as labels of `sluice_build_info`. */
  build?: { version: string }
}

const NAME = /^sluice_[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/
/** Endings the format keeps for the parts of a histogram. */
const KEPT_ENDING = /_(?:bucket|sum|count)$/
const LABEL = /^[a-z][a-z0-9_]*$/
/** Counters with one label of at most this many values show each at zero from the start, so that rates begin there. */
const ZEROS_SHOWN_MAX = 32

/**
 * The numbers live here, in arrays; prom-client prints them. A fresh printing registry is filled for each scrape because
 * the library renames counters for good once it has printed them as OpenMetrics (15.1.3, `registry.metrics`).
 */
export function createMetricsRegistry(options: MetricsRegistryOptions = {}): MetricsRegistry {
  const families = new Map<string, Family>()
  const closing = new DisposableStack()

  function add(family: Family): void {
    assert(NAME.test(family.name), `${family.name}: names are sluice_<area>_<what>_<unit>`)
    assert(family.help.trim() !== '', `${family.name}: a metric needs a help text`)
    const isCounter = family.type === 'counter'
    assert(family.name.endsWith('_total') === isCounter, `${family.name}: counters, and only they, end in _total`)
    assert(!KEPT_ENDING.test(family.name), `${family.name}: this ending belongs to histograms`)
    for (const label of Object.keys(family.labels)) {
      assert(LABEL.test(label) && label !== 'le' && label !== 'quantile', `${family.name}: ${label} cannot be a label`)
    }
    assert(!families.has(family.name), `${family.name} is registered twice`)
    families.set(family.name, family)
  }

  const registry: MetricsRegistry = {
    counter(spec) {
      const family = numberFamily('counter', spec)
      add(family)
      const { slots, values } = family
      if (slots.labelNames.length === 1 && slots.size <= ZEROS_SHOWN_MAX) slots.useListed()
      const incAt = (slot: number, by: number) => {
        // Asked first, since a message is made whether or not it is needed, and this is passed ten times a call.
        if (!(by >= 0)) assert.fail(`${spec.name}: a counter only grows`)
        values[slot] = (values[slot] as number) + by
        slots.use(slot)
      }
      return {
        inc: (labels, by = 1) => incAt(slots.find(labels), by),
        with(labels) {
          const slot = slots.find(labels)
          return { inc: (by = 1) => incAt(slot, by) }
        },
      }
    },

    gauge(spec) {
      const family = numberFamily('gauge', spec)
      add(family)
      const { slots, values } = family
      const setAt = (slot: number, value: number) => {
        values[slot] = value
        slots.use(slot)
      }
      const incAt = (slot: number, by: number) => setAt(slot, (values[slot] as number) + by)
      return {
        set: (value, labels) => setAt(slots.find(labels), value),
        inc: (labels, by = 1) => incAt(slots.find(labels), by),
        dec: (labels, by = 1) => incAt(slots.find(labels), -by),
        with(labels) {
          const slot = slots.find(labels)
          return {
            set: (value) => setAt(slot, value),
            inc: (by = 1) => incAt(slot, by),
            dec: (by = 1) => incAt(slot, -by),
          }
        },
      }
    },

    histogram(spec) {
      const family = histogramFamily(spec)
      add(family)
      const { slots, observeAt } = family
      return {
        observe: (value, labels) => observeAt(slots.find(labels), value),
        with(labels) {
          const slot = slots.find(labels)
          return { observe: (value) => observeAt(slot, value) }
        },
      }
    },

    text: (format = 'prometheus', isShown = () => true) =>
      print(
        families.values().filter(({ name }) => isShown(name)),
        format,
      ),
    contentType: contentTypeOf,
    describe: () =>
      [...families.values()]
        .map(({ samples: _samples, valueAt: _valueAt, ...description }) => description)
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    value: (name, labels) => families.get(name)?.valueAt(labels),
    [Symbol.dispose]: () => closing.dispose(),
  }

  if (options.build) {
    const labels = { version: [options.build.version], node: [process.version] }
    const info = registry.gauge({ name: 'sluice_build_info', help: 'Always 1; its labels name the build.', labels })
    info.set(1, { version: options.build.version, node: process.version })
  }
  if (options.processMetrics) closing.use(addProcessMetrics(registry))
  return registry
}

/** What a scraper asked for: OpenMetrics when its Accept header names it, else the classic text. */
export function negotiateFormat(accept: string | undefined): MetricsFormat {
  return accept?.includes('application/openmetrics-text') ? 'openmetrics' : 'prometheus'
}

function contentTypeOf(format: MetricsFormat = 'prometheus'): RegistryContentType {
  return format === 'openmetrics' ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE
}

async function print(families: Iterable<Family>, format: MetricsFormat): Promise<string> {
  const printer = new Registry<RegistryContentType>()
  printer.setContentType(contentTypeOf(format))
  for (const family of families) {
    const samples = family.samples()
    const printed = {
      name: family.name,
      type: family.type,
      // The printer shortens `name` for OpenMetrics and expects to read back the shortened one.
      get: () => Promise.resolve({ name: printed.name, help: family.help, type: family.type, values: samples }),
    }
    printer.registerMetric(printed as unknown as PrometheusMetric)
  }
  return printer.metrics()
}
