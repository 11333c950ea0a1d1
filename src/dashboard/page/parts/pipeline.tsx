import type { Stage } from '../../../contract/stream-events.ts'
import { type BlockEntry, STAGES } from '../../model/block-log.ts'
import { formatCount, formatMs } from '../../model/format.ts'
import { goTo } from '../follow-hash.ts'
import { useStore } from '../store.ts'
import { Explain } from '../ui/explain.tsx'
import { Panel } from '../ui/panel.tsx'
import { StageBar } from '../ui/stage-bar.tsx'

const CARDS_MAX = 5

/** Part 3: blocks on their way, one lane for each stage. */
export function Pipeline() {
  const { model, version } = useStore()
  void version.value
  return (
    <Panel
      id="pipeline"
      title="Block pipeline"
      aside={
        <span class="legend">
          block, transactions, time in each stage
          <Explain id="blockAge" />
        </span>
      }
    >
      <div class="lanes">
        {STAGES.map((stage) => (
          <Lane
            key={stage}
            stage={stage}
            blocks={model.blocks.inStage(stage, CARDS_MAX)}
            count={model.blocks.countIn(stage)}
            beforeMs={model.blocks.medianBeforeMs(stage)}
          />
        ))}
      </div>
    </Panel>
  )
}

type LaneProps = { stage: Stage; blocks: readonly BlockEntry[]; count: number; beforeMs: number | undefined }

function Lane({ stage, blocks, count, beforeMs }: LaneProps) {
  return (
    <div class={`lane stage-${stage.toLowerCase()}`} data-lane={stage}>
      <h3>
        <span class="dot" aria-hidden="true" />
        {stage}
        <span class="lane-count number">
          {formatCount(count)}
          <Explain id="stageCount" />
        </span>
      </h3>
      <p class="lane-time">
        {stage === 'Proposed' ? (
          'start of the way'
        ) : (
          <>
            after <span class="number">{formatMs(beforeMs)}</span>
            <Explain id="stageTime" />
          </>
        )}
      </p>
      <ol>
        {blocks.map((block) => (
          <li key={block.hash}>
            <button type="button" class="block-card" onClick={() => goTo({ view: 'block', number: block.number })}>
              <span class="number">{String(block.number)}</span>
              <span class="txns number">
                {formatCount(block.txnCount)}
                <span class="sr"> transactions, {stage}</span>
              </span>
              <StageBar reachedMs={block.reachedMs} />
            </button>
          </li>
        ))}
      </ol>
    </div>
  )
}
