import { formatCompact, formatCount, formatMs } from '../../../ui/format.ts'
import { Panel } from '../../../ui/panel.tsx'
import { useStore } from '../store.ts'
import { ExplainedStat } from '../ui/explained-stat.tsx'
import { SeriesChart } from '../ui/series-chart.tsx'

/** Gas and block time over time. */
export function GasCharts() {
  const { model, version, nowMs, range } = useStore()
  void version.value
  const gas = model.gas.summary(range.value, nowMs.value)
  const blockTime = model.blockTime.summary(range.value, nowMs.value)
  return (
    <Panel id="gas" title="Gas and block time">
      <div class="chart-pair">
        <div class="chart-column">
          <ExplainedStat
            id="gasRate"
            label="Gas used"
            value={formatCompact(gas?.average)}
            unit="per second"
            width={6}
          />
          <SeriesChart
            series={model.gas}
            format={formatCompact}
            unit="gas/s"
            label={`Gas used: ${formatCompact(gas?.average)} per second on average.`}
          />
        </div>
        <div class="chart-column">
          <ExplainedStat
            id="blockTime"
            label="Block time"
            value={formatMs(blockTime?.average)}
            unit="average"
            width={6}
          />
          <SeriesChart
            series={model.blockTime}
            format={formatCount}
            unit="ms"
            label={`Time between blocks: ${formatMs(blockTime?.average)} on average.`}
          />
        </div>
      </div>
    </Panel>
  )
}
