import { useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Stage } from '../../../contract/stream-events.ts'
import { formatCount, formatMs, formatTime } from '../../../ui/format.ts'
import { Panel } from '../../../ui/panel.tsx'
import { type BlockEntry, STAGES } from '../../model/block-log.ts'
import { goTo } from '../go-to.ts'
import { useStore } from '../store.ts'
import { Explain } from '../ui/explain.tsx'
import { StageBar } from '../ui/stage-bar.tsx'

/** Cards per lane in a small window and on a large screen. */
const CARDS_MIN = 4
const CARDS_MAX = 12
/** Heights of the style sheet: a lane's head and foot, and a card with the gap before the next. */
const LANE_HEAD_PX = 54
const CARD_PX = 30

/** Part 3: blocks by stage, one lane for each. */
export function Pipeline() {
  const { model, version } = useStore()
  const lanes = useRef<HTMLDivElement>(null)
  const cards = useCards(lanes)
  void version.value
  return (
    <Panel
      id="pipeline"
      title="Blocks by stage"
      aside={
        <span class="legend pipeline-legend">
          <span>
            blocks
            <Explain id="stageCount" />
          </span>
          <span>
            usual wait
            <Explain id="stageTime" />
          </span>
          <span>
            block, transactions, time per stage
            <Explain id="blockAge" />
          </span>
        </span>
      }
    >
      <div ref={lanes} class="lanes">
        {STAGES.map((stage) => (
          <Lane
            key={stage}
            stage={stage}
            blocks={model.blocks.inStage(stage, cards)}
            count={model.blocks.countIn(stage)}
            beforeMs={model.blocks.medianBeforeMs(stage)}
          />
        ))}
      </div>
    </Panel>
  )
}

/** The number of cards that fit a lane completely. */
function useCards(lanes: RefObject<HTMLDivElement | null>): number {
  const cards = useSignal(CARDS_MIN)
  useEffect(() => {
    const element = lanes.current
    if (element === null) return
    const watch = new ResizeObserver(() => {
      const fitting = Math.floor((element.clientHeight - LANE_HEAD_PX) / CARD_PX)
      cards.value = Math.max(CARDS_MIN, Math.min(CARDS_MAX, fitting))
    })
    watch.observe(element)
    return () => watch.disconnect()
  }, [])
  return cards.value
}

function cardTitle({ number, txnCount, timeMs }: BlockEntry): string {
  const proposed = timeMs === undefined ? '' : `, proposed ${formatTime(timeMs)}`
  return `Block ${number}: ${formatCount(txnCount)} transactions${proposed}`
}

type LaneProps = { stage: Stage; blocks: readonly BlockEntry[]; count: number; beforeMs: number | undefined }

function Lane({ stage, blocks, count, beforeMs }: LaneProps) {
  return (
    <div class={`lane stage-${stage.toLowerCase()}`} data-lane={stage}>
      <h3>
        <span class="dot" aria-hidden="true" />
        {stage}
        <span class="lane-count number">{formatCount(count)}</span>
      </h3>
      <p class="lane-time">
        {stage === 'Proposed' ? (
          'first stage'
        ) : (
          <>
            after <span class="number">{formatMs(beforeMs)}</span>
          </>
        )}
      </p>
      <ol>
        {blocks.map((block) => (
          <li key={block.hash}>
            <button
              type="button"
              class="block-card"
              title={cardTitle(block)}
              onClick={() => goTo({ view: 'block', number: block.number })}
            >
              <span class="card-line">
                <span class="number">{String(block.number)}</span>
                <span class="txns number">
                  {formatCount(block.txnCount)}
                  <span class="sr"> transactions, {stage}</span>
                </span>
              </span>
              <StageBar reachedMs={block.reachedMs} />
            </button>
          </li>
        ))}
      </ol>
    </div>
  )
}
