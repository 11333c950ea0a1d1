import type { Stage } from '../../../contract/stream-events.ts'
import { formatMs } from '../../../ui/format.ts'
import { STAGES } from '../../model/block-log.ts'

/** Time spent in each stage, as parts of one bar. */
export function StageBar({ reachedMs }: { reachedMs: Partial<Record<Stage, number>> }) {
  const parts = stageSpans(reachedMs)
  return (
    <span class="stage-bar" aria-hidden="true">
      {parts.map(({ stage, ms }) => (
        <span
          key={stage}
          class={`stage-${stage.toLowerCase()}`}
          style={{ flexGrow: Math.max(1, ms) }}
          title={`${stage} ${formatMs(ms)}`}
        />
      ))}
    </span>
  )
}

/** The time from each stage reached to the next one reached; the last has no end yet. */
function stageSpans(reachedMs: Partial<Record<Stage, number>>): { stage: Stage; ms: number }[] {
  const reached = STAGES.flatMap((stage) => {
    const atMs = reachedMs[stage]
    return atMs === undefined ? [] : [{ stage, atMs }]
  }).toSorted((a, b) => a.atMs - b.atMs)
  return reached.slice(0, -1).map(({ stage, atMs }, at) => ({ stage, ms: (reached[at + 1]?.atMs ?? atMs) - atMs }))
}
