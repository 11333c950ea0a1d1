import assert from 'node:assert/strict'
import type { Metric as PrometheusMetric, RegistryContentType } from 'prom-client'
import {
  type Family,
  type HistogramOptions,
  histogramFamily,
  type MetricDescription,
  type NumberOptions,
  numberFamily,
} from './metric-family.ts'
import type { LabelLists, LabelValues } from './metric-series.ts'

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

type None = Record<never, never>

export type MetricsRegistry = Disposable & {
  counter<const Lists extends LabelLists = None>(
    name: string,
    help: string,
    options?: NumberOptions<Lists>,
  ): Counter<Lists>
  gauge<const Lists extends LabelLists = None>(name: string, help: string, options?: NumberOptions<Lists>): Gauge<Lists>
  histogram<const Lists extends LabelLists = None>(
    name: string,
    help: string,
    options: HistogramOptions<Lists>,
  ): Histogram<Lists>
  /** All metrics, or those that `isShown` selects by name. */
  text(format?: MetricsFormat, isShown?: (name: string) => boolean): Promise<string>
  contentType(format?: MetricsFormat): string
  /** Every metric, for generated documents and for the dashboard tests. */
  describe(): MetricDescription[]
  /** The current value of one series (the count, for a histogram); undefined when it has none yet. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined
}

export type MetricsRegistryOptions = {
  /** Shown as labels of `sluice_build_info`. */
  build?: { version: string }
}

const NAME = /^sluice_[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/
/** Endings that the format reserves for the parts of a histogram. */
const RESERVED_ENDING = /_(?:bucket|sum|count)$/
const LABEL = /^[a-z][a-z0-9_]*$/
/** Counters with one label of at most this many values show each at zero from the start, so that rates begin there. */
const ZEROS_SHOWN_MAX = 32

/**
 * The values are in arrays here; prom-client only prints them. Each scrape fills a new prom-client registry, because the
 * library renames counters permanently once it has printed them as OpenMetrics (15.1.3, `registry.metrics`).
 */
export function createMetricsRegistry(options: MetricsRegistryOptions = {}): MetricsRegistry {
  const families = new Map<string, Family>()
  const closing = new DisposableStack()

  function add(family: Family): void {
    assert(NAME.test(family.name), `${family.name}: names are sluice_<area>_<what>_<unit>`)
    assert(family.help.trim() !== '', `${family.name}: a metric needs a help text`)
    const isCounter = family.type === 'counter'
    assert(family.name.endsWith('_total') === isCounter, `${family.name}: counters, and only they, end in _total`)
    assert(!RESERVED_ENDING.test(family.name), `${family.name}: this ending belongs to histograms`)
    for (const label of Object.keys(family.labels)) {
      assert(LABEL.test(label) && label !== 'le' && label !== 'quantile', `${family.name}: ${label} cannot be a label`)
    }
    assert(!families.has(family.name), `${family.name} is registered twice`)
    families.set(family.name, family)
  }

  const registry: MetricsRegistry = {
    counter(name, help, options) {
      const family = numberFamily('counter', { name, help, ...options })
      add(family)
      const { series, values } = family
      if (series.labelNames.length === 1 && series.size <= ZEROS_SHOWN_MAX) series.useListed()
      const incAt = (index: number, by: number) => {
        // Checked first: assert() builds its message in any case, and this runs ten times per call.
        if (!(by >= 0)) assert.fail(`${name}: a counter only grows`)
        values[index] = (values[index] as number) + by
        series.use(index)
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
      const family = numberFamily('gauge', { name, help, ...options })
      add(family)
      const { series, values } = family
      const setAt = (index: number, value: number) => {
        values[index] = value
        series.use(index)
      }
      const incAt = (index: number, by: number) => setAt(index, (values[index] as number) + by)
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

    histogram(name, help, options) {
      const family = histogramFamily({ name, help, ...options })
      add(family)
      const { series, observeAt } = family
      return {
        observe: (value, labels) => observeAt(series.find(labels), value),
        with(labels) {
          const index = series.find(labels)
          return { observe: (value) => observeAt(index, value) }
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
        .map(({ samples: _samples, valueAt: _valueAt, readLabels, ...description }) => ({
          ...description,
          labels: readLabels(),
        }))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    value: (name, labels) => families.get(name)?.valueAt(labels),
    [Symbol.dispose]: () => closing.dispose(),
  }

  if (options.build) {
    const labels = { version: [options.build.version], node: [process.version] }
    const info = registry.gauge('sluice_build_info', 'Always 1; its labels name the build.', { labels })
    info.set(1, { version: options.build.version, node: process.version })
  }
  return registry
}

/** The format a scraper requests: OpenMetrics when its Accept header names it, else the Prometheus text format. */
export function negotiateFormat(accept: string | undefined): MetricsFormat {
  return accept?.includes('application/openmetrics-text') ? 'openmetrics' : 'prometheus'
}

function contentTypeOf(format: MetricsFormat = 'prometheus'): RegistryContentType {
  return format === 'openmetrics'
    ? 'application/openmetrics-text; version=1.0.0; charset=utf-8'
    : 'text/plain; version=0.0.4; charset=utf-8'
}

/**
 * The library has 80 files, which take 0.1 s of CPU time, and only a scrape needs it. A process that serves its metrics loads it at its start, so that no
 * scrape blocks the event loop for that long; a command never loads it.
 */
export const loadMetricsPrinter = () => import('prom-client')

async function print(families: Iterable<Family>, format: MetricsFormat): Promise<string> {
  const { Registry } = await loadMetricsPrinter()
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
