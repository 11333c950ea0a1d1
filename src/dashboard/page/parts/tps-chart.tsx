import { formatCount } from '../../model/format.ts'
import type { TimeRange } from '../../model/time-series.ts'
import { useStore } from '../store.ts'
import { LineChart } from '../ui/line-chart.tsx'
import { Panel } from '../ui/panel.tsx'
import { Stat } from '../ui/stat.tsx'

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
        <Stat id="tpsNow" label="now" value={formatCount(summary?.now)} unit="tx/s" width={6} tone="lead" />
        <Stat id="tpsAverage" label="average" value={formatCount(summary?.average)} width={6} />
        <Stat id="tpsPeak" label="peak" value={formatCount(summary?.peak)} width={6} />
      </div>
      <LineChart
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
