import assert from 'node:assert/strict'
import { type LabelLists, type LabelValues, MetricSlots } from './metric-series.ts'

type Spec<Lists extends LabelLists> = { name: string; help: string; labels?: Lists }
/** With `read` the value is asked for at each scrape instead of being set. Such a metric has no labels. */
export type CounterSpec<Lists extends LabelLists> = Spec<Lists> & { read?: () => number }
export type GaugeSpec<Lists extends LabelLists> = Spec<Lists> & { read?: () => number }
export type HistogramSpec<Lists extends LabelLists> = Spec<Lists> & { buckets: readonly number[] }

export type MetricDescription = {
  name: string
  help: string
  type: 'counter' | 'gauge' | 'histogram'
  labels: Record<string, readonly string[]>
  buckets?: readonly number[]
  /** How many series this metric can ever have. */
  seriesMax: number
}

export type Sample = { value: number; labels: Record<string, string | number>; metricName?: string }
/** One metric with all its series, ready to be printed. */
export type Family = MetricDescription & {
  samples: () => Sample[]
  valueAt: (labels: Readonly<Record<string, string>> | undefined) => number | undefined
}

export function numberFamily<Lists extends LabelLists>(
  type: 'counter' | 'gauge',
  spec: CounterSpec<Lists> | GaugeSpec<Lists>,
) {
  const slots = new MetricSlots(spec.labels ?? ({} as Lists))
  const values = new Float64Array(slots.size)
  const { read } = spec
  if (read) assert(slots.labelNames.length === 0, `${spec.name}: a metric that is read has no labels`)
  return {
    ...describe(type, spec, slots, 1),
    slots,
    values,
    samples(): Sample[] {
      if (read) return [{ value: read(), labels: {} }]
      return Array.from(slots.used(), ({ slot, labels }) => ({ value: values[slot] as number, labels }))
    },
    valueAt(labels: Readonly<Record<string, string>> | undefined): number | undefined {
      if (read) return read()
      const slot = slots.find(labels as LabelValues<Lists> | undefined)
      return slots.isUsed(slot) ? values[slot] : undefined
    },
  }
}

export function histogramFamily<Lists extends LabelLists>(spec: HistogramSpec<Lists>) {
  const bounds = Float64Array.from(spec.buckets)
  assert(bounds.length > 0, `${spec.name}: a histogram needs buckets`)
  assert(
    bounds.every((bound, at) => at === 0 || bound > (bounds[at - 1] as number)),
    `${spec.name}: buckets must rise`,
  )
  const slots = new MetricSlots(spec.labels ?? ({} as Lists))
  // Per slot: one count for each bound, one for what lies above all of them.
  const width = bounds.length + 1
  const counts = new Float64Array(slots.size * width)
  const sums = new Float64Array(slots.size)

  function observeAt(slot: number, value: number): void {
    if (Number.isNaN(value)) assert.fail(`${spec.name}: not a number`)
    let at = 0
    while (at < bounds.length && value > (bounds[at] as number)) at += 1
    const cell = slot * width + at
    counts[cell] = (counts[cell] as number) + 1
    sums[slot] = (sums[slot] as number) + value
    slots.use(slot)
  }

  function samplesOf(slot: number, labels: Record<string, string>): Sample[] {
    const samples: Sample[] = []
    let below = 0
    for (let at = 0; at < width; at++) {
      below += counts[slot * width + at] as number
      const le = at < bounds.length ? (bounds[at] as number) : '+Inf'
      samples.push({ metricName: `${spec.name}_bucket`, labels: { ...labels, le }, value: below })
    }
    samples.push({ metricName: `${spec.name}_sum`, labels, value: sums[slot] as number })
    samples.push({ metricName: `${spec.name}_count`, labels, value: below })
    return samples
  }

  return {
    ...describe('histogram', spec, slots, width + 2),
    buckets: spec.buckets,
    slots,
    observeAt,
    samples: (): Sample[] => [...slots.used()].flatMap(({ slot, labels }) => samplesOf(slot, labels)),
    valueAt(labels: Readonly<Record<string, string>> | undefined): number | undefined {
      const slot = slots.find(labels as LabelValues<Lists> | undefined)
      if (!slots.isUsed(slot)) return undefined
      return counts.subarray(slot * width, (slot + 1) * width).reduce((total, count) => total + count, 0)
    },
  }
}

function describe<Type extends MetricDescription['type']>(
  type: Type,
  spec: Spec<LabelLists>,
  slots: MetricSlots<LabelLists>,
  seriesPerSlot: number,
) {
  const labels = Object.fromEntries(slots.labelNames.map((name, at) => [name, slots.labelValues[at] ?? []]))
  return { name: spec.name, help: spec.help, type, labels, seriesMax: slots.size * seriesPerSlot }
}
