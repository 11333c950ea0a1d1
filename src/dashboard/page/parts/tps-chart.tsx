import { formatCount } from '../../../ui/format.ts'
import { Panel } from '../../../ui/panel.tsx'
import type { TimeRange } from '../../model/time-series.ts'
import { useStore } from '../store.ts'
import { ExplainedStat } from '../ui/explained-stat.tsx'
import { SeriesChart } from '../ui/series-chart.tsx'

const RANGE_LABELS: Readonly<Record<TimeRange, string>> = { '5m': '5 min', '1h': '1 h' }

/** Part 2: throughput over time. Its range is that of all charts. */
export function TpsChart() {
  const { model, version, nowMs, range } = useStore()
  void version.value
  const summary = model.tps.summary(range.value, nowMs.value)
  return (
    <Panel
      id="tps"
      title="Throughput"
      aside={
        <div class="switch" role="group" aria-label="Range of the charts">
          {(['5m', '1h'] as const).map((each) => (
            <button key={each} type="button" aria-pressed={range.value === each} onClick={() => (range.value = each)}>
              {RANGE_LABELS[each]}
            </button>
          ))}
        </div>
      }
    >
      <div class="stats">
        <ExplainedStat id="tpsNow" label="now" value={formatCount(summary?.now)} unit="tx/s" width={6} tone="lead" />
        <ExplainedStat id="tpsAverage" label="average" value={formatCount(summary?.average)} width={6} />
        <ExplainedStat id="tpsPeak" label="peak" value={formatCount(summary?.peak)} width={6} />
      </div>
      <SeriesChart
        series={model.tps}
        format={formatCount}
        unit="tx/s"
        label={
          summary === undefined
            ? 'No value yet.'
            : `Now ${formatCount(summary.now)}, average ${formatCount(summary.average)}, peak ${formatCount(summary.peak)} transactions per second over ${RANGE_LABELS[range.value]}.`
        }
      />
    </Panel>
  )
}
