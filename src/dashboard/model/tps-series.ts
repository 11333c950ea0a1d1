export type TpsPoint = { readonly atMs: number; readonly tps: number }
export type TpsRange = '5m' | '1h'
export type TpsSummary = { readonly now: number; readonly average: number; readonly peak: number }

const RANGE_MS: Readonly<Record<TpsRange, number>> = { '5m': 300_000, '1h': 3_600_000 }
/** Ten values a second for five minutes; above that the oldest are dropped. */
const POINTS_MAX = 3000
const BUCKET_MS = 2000
const BUCKETS_MAX = RANGE_MS['1h'] / BUCKET_MS

type Bucket = { fromMs: number; sum: number; count: number; peak: number }

/** TPS over time: every value of five minutes, and two-second averages of an hour. */
export type TpsSeries = {
  add(tps: number, atMs: number): void
  /** Adds values from before the page was opened, oldest first, at equal intervals; null where there is none. */
  addEarlier(values: readonly (number | null)[], untilMs: number, intervalMs: number): void
  /** Times and values for a chart, oldest first. A gap in the data is a null. */
  read(range: TpsRange, nowMs: number): { times: number[]; values: (number | null)[] }
  summary(range: TpsRange, nowMs: number): TpsSummary | undefined
}

/** The line is interrupted after this long without a value. */
const GAP_MS: Readonly<Record<TpsRange, number>> = { '5m': 5000, '1h': 10_000 }

export function createTpsSeries(): TpsSeries {
  let points: TpsPoint[] = []
  let buckets: Bucket[] = []

  function add(tps: number, atMs: number): void {
    points.push({ atMs, tps })
    if (points.length > POINTS_MAX * 1.25) points = points.slice(-POINTS_MAX)
    const fromMs = Math.floor(atMs / BUCKET_MS) * BUCKET_MS
    const last = buckets.at(-1)
    if (last !== undefined && last.fromMs >= fromMs) {
      last.sum += tps
      last.count += 1
      last.peak = Math.max(last.peak, tps)
      return
    }
    buckets.push({ fromMs, sum: tps, count: 1, peak: tps })
    if (buckets.length > BUCKETS_MAX * 1.25) buckets = buckets.slice(-BUCKETS_MAX)
  }

  function within(range: TpsRange, nowMs: number): { atMs: number; tps: number; count: number; peak: number }[] {
    const sinceMs = nowMs - RANGE_MS[range]
    if (range === '5m') {
      return points.filter(({ atMs }) => atMs >= sinceMs).map(({ atMs, tps }) => ({ atMs, tps, count: 1, peak: tps }))
    }
    return buckets
      .filter(({ fromMs }) => fromMs >= sinceMs)
      .map(({ fromMs, sum, count, peak }) => ({ atMs: fromMs, tps: sum / count, count, peak }))
  }

  return {
    add,
    addEarlier(values, untilMs, intervalMs) {
      const later = points
      points = []
      buckets = []
      for (const [at, value] of values.entries())
        if (value !== null) add(value, untilMs - (values.length - at) * intervalMs)
      for (const point of later) add(point.tps, point.atMs)
    },
    read(range, nowMs) {
      const times: number[] = []
      const values: (number | null)[] = []
      for (const { atMs, tps } of within(range, nowMs)) {
        const before = times.at(-1)
        if (before !== undefined && atMs - before * 1000 > GAP_MS[range]) {
          times.push((before * 1000 + atMs) / 2000)
          values.push(null)
        }
        times.push(atMs / 1000)
        values.push(tps)
      }
      return { times, values }
    },
    summary(range, nowMs) {
      const seen = within(range, nowMs)
      const now = points.at(-1)?.tps
      if (seen.length === 0 || now === undefined) return undefined
      let sum = 0
      let count = 0
      let peak = 0
      for (const entry of seen) {
        sum += entry.tps * entry.count
        count += entry.count
        peak = Math.max(peak, entry.peak)
      }
      return { now, average: Math.round(sum / count), peak }
    },
  }
}
