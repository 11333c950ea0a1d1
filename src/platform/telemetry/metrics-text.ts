import type { Metric as PrometheusMetric, RegistryContentType } from 'prom-client'
import type { MetricType } from './metric-memory.ts'

export type MetricsFormat = 'prometheus' | 'openmetrics'

export type Sample = {
  readonly value: number
  readonly labels: Readonly<Record<string, string | number>>
  readonly metricName?: string
}
/** One metric with all its series. */
export type PrintedFamily = {
  readonly name: string
  readonly help: string
  readonly type: MetricType
  readonly samples: readonly Sample[]
}

/** The format a scraper requests: OpenMetrics when its Accept header names it and does not prefer plain text, else the Prometheus text format. */
export function negotiateFormat(accept = ''): MetricsFormat {
  const openMetrics = weightOf('application/openmetrics-text', accept)
  return openMetrics > 0 && openMetrics >= weightOf('text/plain', accept) ? 'openmetrics' : 'prometheus'
}

/** The highest weight of the ranges that name this type, whatever their version (RFC 9110 section 12.5.1); 0 where none does. */
function weightOf(type: string, accept: string): number {
  const weights = accept.split(',').map((range) => {
    const [name, ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    if (name !== type) return 0
    const weight = Number(parameters.find((each) => each.startsWith('q='))?.slice(2) ?? 1)
    return weight <= 1 ? weight : 0
  })
  return Math.max(...weights)
}

export function contentTypeOf(format: MetricsFormat = 'prometheus'): RegistryContentType {
  return format === 'openmetrics'
    ? 'application/openmetrics-text; version=1.0.0; charset=utf-8'
    : 'text/plain; version=0.0.4; charset=utf-8'
}

/**
 * The library has 80 files, which take 0.1 s of CPU time, and only a scrape needs it. A process that serves its metrics loads it at its start, so that no
 * scrape blocks the event loop for that long; a command never loads it.
 */
export const loadMetricsPrinter = () => import('prom-client')

/** Each scrape fills a new prom-client registry: the library renames counters permanently once it has printed them as OpenMetrics (15.1.3, `registry.metrics`). */
export async function printMetrics(families: readonly PrintedFamily[], format: MetricsFormat): Promise<string> {
  const { Registry } = await loadMetricsPrinter()
  const printer = new Registry<RegistryContentType>()
  printer.setContentType(contentTypeOf(format))
  for (const { name, help, type, samples } of families) {
    const printed = {
      name,
      type,
      // The printer shortens `name` for OpenMetrics and expects to read back the shortened one.
      get: () => Promise.resolve({ name: printed.name, help, type, values: samples }),
    }
    printer.registerMetric(printed as unknown as PrometheusMetric)
  }
  return printer.metrics()
}
