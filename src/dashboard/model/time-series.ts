import type { ChartData } from '../../ui/chart-data.ts'

export type TimeRange = '5m' | '1h'
export type TimePoint = { readonly atMs: number; readonly value: number }
type Summary = { readonly now: number; readonly average: number; readonly peak: number }

const SPAN_MS: Readonly<Record<TimeRange, number>> = { '5m': 300_000, '1h': 3_600_000 }
/** A chart of less data than its range begins with the data, but never covers less than this. */
const SHORTEST_SPAN_MS = 60_000
const SECONDS_MAX = 3600
/** Width of a point of the chart, by the time it shows. */
const STEP_MS = 2000
const STEP_LONG_MS = 5000
const LONG_SPAN_MS = 900_000
/** The line is interrupted after this long without a value, and after three times the usual distance between values. */
const GAP_MS = 5000
const GAP_INTERVALS = 3

type Second = { fromMs: number; sum: number; count: number; peak: number }

/** Values of the last hour, summed up by second: those of the stream, and those of the service's history. */
export type TimeSeries = {
  add(value: number, atMs: number): void
  /** Adds values of the history, whose times are exact: they replace those of the same second, so that nothing counts twice. */
  addHistory(points: readonly TimePoint[]): void
  read(range: TimeRange, nowMs: number): ChartData
  summary(range: TimeRange, nowMs: number): Summary | undefined
}

/** `mean`: a point is the mean of its values. `rate`: values are amounts, and a point is their sum per second. */
export function createTimeSeries(kind: 'mean' | 'rate'): TimeSeries {
  let seconds: Second[] = []
  let newest: { atMs: number; value: number } | undefined

  function add(value: number, atMs: number): void {
    if (newest === undefined || atMs >= newest.atMs) newest = { atMs, value }
    const fromMs = secondOf(atMs)
    const last = seconds.at(-1)
    if (last === undefined || last.fromMs < fromMs) {
      seconds.push({ fromMs, sum: value, count: 1, peak: value })
      if (seconds.length > SECONDS_MAX * 1.25) seconds = seconds.slice(-SECONDS_MAX)
      return
    }
    const second = seconds.findLast((each) => each.fromMs <= fromMs)
    if (second?.fromMs !== fromMs) {
      seconds = merge(seconds, [{ fromMs, sum: value, count: 1, peak: value }])
      return
    }
    second.sum += value
    second.count += 1
    second.peak = Math.max(second.peak, value)
  }

  function within(range: TimeRange, nowMs: number): { steps: Second[]; stepMs: number; fromMs: number } {
    const sinceMs = nowMs - SPAN_MS[range]
    const seen = seconds.filter(({ fromMs }) => fromMs >= sinceMs && fromMs <= nowMs)
    const fromMs = Math.min(nowMs - SHORTEST_SPAN_MS, Math.max(sinceMs, seen[0]?.fromMs ?? sinceMs))
    const stepMs = nowMs - fromMs > LONG_SPAN_MS ? STEP_LONG_MS : STEP_MS
    const steps: Second[] = []
    for (const second of seen) {
      const at = Math.floor(second.fromMs / stepMs) * stepMs
      const last = steps.at(-1)
      if (last?.fromMs !== at) steps.push({ ...second, fromMs: at })
      else {
        last.sum += second.sum
        last.count += second.count
        last.peak = Math.max(last.peak, second.peak)
      }
    }
    // The sum of a step that has not ended would be too low.
    if (kind === 'rate' && (steps.at(-1)?.fromMs ?? 0) + stepMs > nowMs) steps.pop()
    return { steps, stepMs, fromMs }
  }

  /** The points of a chart, with the distance to the point before where the line continues from it. */
  function points(range: TimeRange, nowMs: number) {
    const { steps, stepMs, fromMs } = within(range, nowMs)
    const usualMs = usualInterval(steps, stepMs)
    const gapMs = Math.max(GAP_MS, GAP_INTERVALS * usualMs)
    return {
      fromMs,
      stepMs,
      list: steps.map((step, at) => {
        const sinceMs = step.fromMs - (steps[at - 1]?.fromMs ?? Number.NEGATIVE_INFINITY)
        const continues = sinceMs <= gapMs
        const overMs = continues ? sinceMs : usualMs
        const value = kind === 'mean' ? step.sum / step.count : (step.sum * 1000) / overMs
        return { ...step, value, continues }
      }),
    }
  }

  return {
    add,
    addHistory(history) {
      const bySecond = new Map<number, Second>()
      for (const { atMs, value } of history) {
        const fromMs = secondOf(atMs)
        bySecond.set(fromMs, { fromMs, sum: value, count: 1, peak: value })
        if (newest === undefined || atMs > newest.atMs) newest = { atMs, value }
      }
      const others = seconds.filter(({ fromMs }) => !bySecond.has(fromMs))
      seconds = merge(others, [...bySecond.values()])
    },
    read(range, nowMs) {
      const times: number[] = []
      const values: (number | null)[] = []
      const { list, fromMs, stepMs } = points(range, nowMs)
      for (const { fromMs: atMs, value, continues } of list) {
        // Few values make an outlier at the end of the line.
        if (times.length > 0 && atMs + stepMs > nowMs) break
        const before = times.at(-1)
        if (before !== undefined && !continues) {
          times.push((before + atMs / 1000) / 2)
          values.push(null)
        }
        times.push(atMs / 1000)
        values.push(value)
      }
      return { times, values, fromS: fromMs / 1000, untilS: nowMs / 1000 }
    },
    summary(range, nowMs) {
      const { list } = points(range, nowMs)
      const last = list.at(-1)
      if (last === undefined || newest === undefined) return undefined
      if (kind === 'rate') {
        const values = list.map(({ value }) => value)
        const average = values.reduce((sum, value) => sum + value, 0) / values.length
        return { now: last.value, average, peak: Math.max(...values) }
      }
      const sum = list.reduce((total, each) => total + each.sum, 0)
      const count = list.reduce((total, each) => total + each.count, 0)
      return { now: newest.value, average: sum / count, peak: Math.max(...list.map(({ peak }) => peak)) }
    },
  }
}

function secondOf(atMs: number): number {
  return Math.floor(atMs / 1000) * 1000
}

function merge(seconds: readonly Second[], added: readonly Second[]): Second[] {
  return [...seconds, ...added].toSorted((a, b) => a.fromMs - b.fromMs).slice(-SECONDS_MAX)
}

/** The median distance between neighbours. */
function usualInterval(steps: readonly Second[], stepMs: number): number {
  const intervals = steps.slice(1).map((step, at) => step.fromMs - (steps[at]?.fromMs ?? step.fromMs))
  return intervals.toSorted((a, b) => a - b)[(intervals.length - 1) >> 1] ?? stepMs
}
