import assert from 'node:assert/strict'
import { type LabelLists, type LabelValues, MetricSeries } from './metric-series.ts'

/** With `read` the value is read at each scrape instead of being set. Such a metric has no labels. */
export type NumberOptions<Lists extends LabelLists> = { labels?: Lists; read?: () => number }
export type HistogramOptions<Lists extends LabelLists> = { labels?: Lists; buckets: readonly number[] }
/** What a metric is called, and its help text. */
type Title = { readonly name: string; readonly help: string }

export type MetricDescription = {
  name: string
  help: string
  type: 'counter' | 'gauge' | 'histogram'
  labels: Record<string, readonly string[]>
  buckets?: readonly number[]
  /** The most series this metric can have. */
  seriesMax: number
}

export type Sample = { value: number; labels: Record<string, string | number>; metricName?: string }
/** One metric with all its series, ready to be printed. */
export type Family = MetricDescription & {
  /** The label values of now: those of a changing label differ from those at the start. */
  readLabels: () => MetricDescription['labels']
  samples: () => Sample[]
  valueAt: (labels: Readonly<Record<string, string>> | undefined) => number | undefined
}

export function numberFamily<Lists extends LabelLists>(type: 'counter' | 'gauge', spec: Title & NumberOptions<Lists>) {
  const series = new MetricSeries(spec.labels ?? ({} as Lists))
  const values = new Float64Array(series.size)
  series.onFreed((index) => void (values[index] = 0))
  const { read } = spec
  if (read) {
    assert(series.labelNames.length === 0, `${spec.name}: a metric that is read has no labels`)
    // A reader that needs what is not created yet fails here, at every start, and not at the first scrape that comes early.
    read()
  }
  return {
    ...describe(type, spec, series, 1),
    series,
    values,
    samples(): Sample[] {
      if (read) return [{ value: read(), labels: {} }]
      return Array.from(series.used(), ({ index, labels }) => ({ value: values[index] as number, labels }))
    },
    valueAt(labels: Readonly<Record<string, string>> | undefined): number | undefined {
      if (read) return read()
      const index = series.find(labels as LabelValues<Lists> | undefined)
      return series.isUsed(index) ? values[index] : undefined
    },
  }
}

export function histogramFamily<Lists extends LabelLists>(spec: Title & HistogramOptions<Lists>) {
  const bounds = Float64Array.from(spec.buckets)
  assert(bounds.length > 0, `${spec.name}: a histogram needs buckets`)
  assert(
    bounds.every((bound, at) => at === 0 || bound > (bounds[at - 1] as number)),
    `${spec.name}: buckets must rise`,
  )
  const series = new MetricSeries(spec.labels ?? ({} as Lists))
  // Per series: one count for each bound, and one for values above all of them.
  const width = bounds.length + 1
  const counts = new Float64Array(series.size * width)
  const sums = new Float64Array(series.size)
  series.onFreed((index) => {
    counts.fill(0, index * width, (index + 1) * width)
    sums[index] = 0
  })

  function observeAt(index: number, value: number): void {
    if (Number.isNaN(value)) assert.fail(`${spec.name}: not a number`)
    let at = 0
    while (at < bounds.length && value > (bounds[at] as number)) at += 1
    const cell = index * width + at
    counts[cell] = (counts[cell] as number) + 1
    sums[index] = (sums[index] as number) + value
    series.use(index)
  }

  function samplesOf(index: number, labels: Record<string, string>): Sample[] {
    const samples: Sample[] = []
    let below = 0
    for (let at = 0; at < width; at++) {
      below += counts[index * width + at] as number
      const le = at < bounds.length ? (bounds[at] as number) : '+Inf'
      samples.push({ metricName: `${spec.name}_bucket`, labels: { ...labels, le }, value: below })
    }
    samples.push({ metricName: `${spec.name}_sum`, labels, value: sums[index] as number })
    samples.push({ metricName: `${spec.name}_count`, labels, value: below })
    return samples
  }

  return {
    ...describe('histogram', spec, series, width + 2),
    buckets: spec.buckets,
    series,
    observeAt,
    samples: (): Sample[] => [...series.used()].flatMap(({ index, labels }) => samplesOf(index, labels)),
    valueAt(labels: Readonly<Record<string, string>> | undefined): number | undefined {
      const index = series.find(labels as LabelValues<Lists> | undefined)
      if (!series.isUsed(index)) return undefined
      return counts.subarray(index * width, (index + 1) * width).reduce((total, count) => total + count, 0)
    },
  }
}

function describe<Type extends MetricDescription['type']>(
  type: Type,
  spec: Title,
  series: MetricSeries<LabelLists>,
  samplesPerSeries: number,
) {
  const readLabels = () => Object.fromEntries(series.labelNames.map((name, at) => [name, series.labelValues[at] ?? []]))
  const seriesMax = series.size * samplesPerSeries
  return { name: spec.name, help: spec.help, type, labels: readLabels(), readLabels, seriesMax }
}
