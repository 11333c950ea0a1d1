import type { BucketCounts } from '../../../platform/telemetry/bucket-quantile.ts'
import type { MetricsView } from '../../../platform/telemetry/metrics-view.ts'

export type MetricSum = {
  /** Sum of all series with these labels; 0 for an unknown metric. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number
  /** The sum for each value of one label, without zeros. */
  by(name: string, label: string): Readonly<Record<string, number>>
  /** A histogram without labels; without any counts where it is unknown. */
  buckets(name: string): BucketCounts
}

/** Reads the metrics, so that `top` and Prometheus always agree. For one report: metrics and label values come and go with threads and reloads. */
export function createMetricSum(registry: Pick<MetricsView, 'describe' | 'value' | 'buckets'>): MetricSum {
  const lists = new Map(registry.describe().map(({ name, labels }) => [name, labels]))

  function sum(name: string, fixed: Readonly<Record<string, string>> = {}): number {
    const labels = lists.get(name)
    if (labels === undefined) return 0
    let total = 0
    for (const combination of combinations(labels, fixed)) total += registry.value(name, combination) ?? 0
    return total
  }

  return {
    sum,
    by(name, label) {
      const values = (lists.get(name)?.[label] ?? []).map((value) => [value, sum(name, { [label]: value })] as const)
      return Object.fromEntries(values.filter(([, count]) => count > 0))
    },
    buckets: (name) => registry.buckets(name) ?? { bounds: [], counts: [] },
  }
}

function* combinations(
  labels: Readonly<Record<string, readonly string[]>>,
  fixed: Readonly<Record<string, string>>,
): Generator<Record<string, string>> {
  const [first, ...rest] = Object.entries(labels)
  if (first === undefined) {
    yield {}
    return
  }
  const [name, listed] = first
  const given = fixed[name]
  for (const value of given === undefined ? listed : [given])
    for (const others of combinations(Object.fromEntries(rest), fixed)) yield { [name]: value, ...others }
}
