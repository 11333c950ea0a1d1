import { useMemo } from 'preact/hooks'
import { formatCount, formatPercent } from '../../../ui/format.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Spark } from '../../../ui/spark.tsx'
import { computeHeatStrip } from '../../model/heat-strip.ts'
import { VERDICT_TEXT, verdictOf } from '../../model/verdict.ts'
import { useStore } from '../store.ts'
import { Explain } from '../ui/explain.tsx'
import { ExplainedStat } from '../ui/explained-stat.tsx'
import { HeatCanvas } from './heat-canvas.tsx'

const HEAT_BLOCKS = 120
const SPARK_BLOCKS = 60

/** Part 4: contention and conflicts between transactions. */
export function Contention() {
  const { model, version } = useStore()
  void version.value
  const series = model.contention.last(SPARK_BLOCKS)
  const newest = model.contention.newest()
  const conflicts = newest && model.conflicts(newest.block_number)
  // A source without times has an efficiency of zero, which would be shown as the worst verdict.
  const isTimed = model.facts().hello?.source?.timings !== false
  const efficiency = isTimed ? newest?.parallel_efficiency_pct : undefined
  const verdict = verdictOf(efficiency)
  // Computed when a block was added or replaced, not with every frame.
  const strip = useMemo(() => computeHeatStrip(model.blocks.contentions(HEAT_BLOCKS)), [newest])
  return (
    <Panel
      id="contention"
      title="Conflicts"
      aside={
        <>
          <p class={`verdict tone-${verdict}`}>{isTimed ? VERDICT_TEXT[verdict] : 'this source has no times'}</p>
          <span class="legend thresholds">
            <i class="tone-good" /> 90 and above
            <i class="tone-fair" /> 70–90
            <i class="tone-poor" /> below 70
          </span>
        </>
      }
    >
      <div class="stats">
        <ExplainedStat
          id="efficiency"
          label="parallel efficiency"
          value={formatPercent(efficiency)}
          unit="%"
          width={5}
          tone={verdict}
          note={
            <Spark
              label="Efficiency of the last blocks"
              values={series.map((block) => block.parallel_efficiency_pct)}
              min={0}
              max={100}
              tone={verdict}
            />
          }
        />
        <ExplainedStat
          id="contendedRatio"
          label="contended slots"
          value={formatPercent(newest && newest.contention_ratio * 100)}
          unit="%"
          width={5}
          note={
            <Spark
              label="Share of contended slots of the last blocks"
              values={series.map((block) => block.contention_ratio)}
              min={0}
              max={Math.max(0.01, ...series.map((block) => block.contention_ratio))}
            />
          }
        />
        <ExplainedStat
          id="conflictShare"
          label="waiting on conflicts"
          value={formatPercent(conflicts && conflicts.conflict_share * 100)}
          unit="%"
          width={5}
          note={<span class="dim">of {formatCount(newest?.total_txn_count)} tx</span>}
        />
        <ExplainedStat id="depth" label="parallel waves" value={formatCount(conflicts?.depth)} width={4} />
      </div>
      <div class="heat-head">
        <h3>
          Busiest storage slots, block by block
          <Explain id="heat" />
        </h3>
        <span class="legend heat-legend">
          0
          {[0, 1, 2, 3, 4, 5].map((step) => (
            <i key={step} class={`heat-${step}`} />
          ))}
          {formatCount(strip.max)} tx on a slot
        </span>
      </div>
      <HeatCanvas strip={strip} />
    </Panel>
  )
}
