import { LineChart } from '../../../ui/line-chart.tsx'
import type { TimeSeries } from '../../model/time-series.ts'
import { useStore } from '../store.ts'

const REDRAW_MS = 500

type SeriesChartProps = {
  series: TimeSeries
  label: string
  format: (value: number) => string
  unit: string
}

/** The chart of a series, over the range that all charts of the page have. */
export function SeriesChart({ series, ...shown }: SeriesChartProps) {
  const { nowMs, range } = useStore()
  return (
    <LineChart
      {...shown}
      read={() => series.read(range.value, nowMs.value)}
      drawnFor={`${range.value} ${Math.floor(nowMs.value / REDRAW_MS)}`}
    />
  )
}
