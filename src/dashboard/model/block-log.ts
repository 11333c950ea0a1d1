import type { BlockSummary } from '../../contract/execution-routes.ts'
import type { ContentionData, Lifecycle, Stage } from '../../contract/stream-events.ts'

/** The stages of a block, in order. */
export const STAGES: readonly Stage[] = ['Proposed', 'Voted', 'Finalized', 'Verified', 'Rejected']

/** Stages that a block in a stage can still reach, except that it is rejected. */
const LATER_STAGES: Readonly<Record<Stage, readonly Stage[]>> = {
  Proposed: ['Voted', 'Finalized', 'Verified'],
  Voted: ['Finalized', 'Verified'],
  Finalized: ['Verified'],
  Verified: [],
  Rejected: [],
}

/** One proposal, as far as this page has seen it. */
export type BlockEntry = {
  readonly hash: string
  readonly number: number
  readonly stage: Stage
  readonly txnCount: number
  readonly gasUsed: number | null
  /** When it was proposed, on the clock of this device; undefined where this page cannot know. */
  readonly timeMs: number | undefined
  /** Milliseconds since Proposed, for each stage that was seen. */
  readonly reachedMs: Partial<Record<Stage, number>>
}

/** Blocks kept for the lanes, the heat strip, the charts and the views; about two minutes at 400 ms. */
const BLOCKS_MAX = 300
/** Stage times kept for the medians of the lanes. */
const TIMES_MAX = 100

export type BlockLog = {
  /** `arrivedMs`: undefined for a change that did not arrive when it happened. */
  addLifecycle(change: Lifecycle, arrivedMs: number | undefined): void
  addContention(data: ContentionData): void
  /** Adds blocks of the history, oldest first. What the stream has sent stays. */
  addHistory(blocks: readonly BlockEntry[], contentions: readonly ContentionData[]): void
  /** Newest first. Blocks that later ones have overtaken are left out: their last stages were not seen. */
  inStage(stage: Stage, max: number): BlockEntry[]
  countIn(stage: Stage): number
  /** Median time that blocks spent before they entered the stage. */
  medianBeforeMs(stage: Stage): number | undefined
  find(number: number): BlockEntry[]
  /** As the stream sent it; undefined where only the shortened lists of the history are known. */
  contention(number: number): ContentionData | undefined
  /** Oldest first. */
  contentions(max: number): ContentionData[]
  newest(): number | undefined
  /** When the block with the number was proposed, where it is known. */
  timeMs(number: number): number | undefined
}

export function createBlockLog(): BlockLog {
  let entries = new Map<string, BlockEntry>()
  let contentions = new Map<number, ContentionData>()
  const shortened = new WeakSet<ContentionData>()
  let newest: number | undefined

  function update(number: number): void {
    newest = newest === undefined ? number : Math.max(newest, number)
  }

  function waitingIn(stage: Stage): BlockEntry[] {
    const later = LATER_STAGES[stage]
    let overtaken = -1
    for (const entry of entries.values()) if (later.includes(entry.stage)) overtaken = Math.max(overtaken, entry.number)
    return [...entries.values()].filter((entry) => entry.stage === stage && entry.number > overtaken)
  }

  return {
    addLifecycle(change, arrivedMs) {
      update(change.block_number)
      const known = entries.get(change.block_hash)
      // A block that was rejected and is executed again begins again.
      const before = change.from_stage === null && known?.stage !== 'Proposed' ? undefined : known
      entries.set(change.block_hash, {
        hash: change.block_hash,
        number: change.block_number,
        stage: change.to_stage,
        txnCount: change.txn_count,
        gasUsed: change.gas_used,
        timeMs: before?.timeMs ?? (arrivedMs === undefined ? undefined : arrivedMs - change.block_age_ms),
        reachedMs: { Proposed: 0, ...before?.reachedMs, [change.to_stage]: change.block_age_ms },
      })
      dropOldest(entries)
    },
    addContention(data) {
      update(data.block_number)
      contentions.delete(data.block_number)
      contentions.set(data.block_number, data)
      dropOldest(contentions)
    },
    addHistory(blocks, earlier) {
      for (const { number } of blocks) update(number)
      const merged = new Map(blocks.map((block) => [block.hash, block]))
      for (const [hash, block] of entries) {
        const known = merged.get(hash)
        const timeMs = known?.timeMs ?? block.timeMs
        merged.set(hash, { ...block, timeMs, reachedMs: { ...known?.reachedMs, ...block.reachedMs } })
      }
      entries = new Map([...merged].toSorted(([, a], [, b]) => a.number - b.number))
      dropOldest(entries)
      for (const data of earlier) shortened.add(data)
      const live = [...contentions].filter(([, data]) => !shortened.has(data))
      contentions = new Map(
        [...new Map([...earlier.map((data) => [data.block_number, data] as const), ...live])].toSorted(
          ([a], [b]) => a - b,
        ),
      )
      dropOldest(contentions)
    },
    inStage: (stage, max) =>
      waitingIn(stage)
        .toSorted((a, b) => b.number - a.number)
        .slice(0, max),
    countIn: (stage) => waitingIn(stage).length,
    medianBeforeMs: (stage) =>
      median([...entries.values()].flatMap(({ reachedMs }) => beforeMs(reachedMs, stage) ?? []).slice(-TIMES_MAX)),
    find: (number) => [...entries.values()].filter((entry) => entry.number === number),
    contention(number) {
      const data = contentions.get(number)
      return data === undefined || shortened.has(data) ? undefined : data
    },
    contentions: (max) => [...contentions.values()].slice(-max),
    newest: () => newest,
    timeMs: (number) => entries.values().find((entry) => entry.number === number)?.timeMs,
  }
}

/** Time from the stage reached before to this one. */
function beforeMs(reachedMs: BlockEntry['reachedMs'], stage: Stage): number | undefined {
  const atMs = reachedMs[stage]
  if (atMs === undefined) return undefined
  const earlier = STAGES.slice(0, STAGES.indexOf(stage)).flatMap((each) => reachedMs[each] ?? [])
  return earlier.length === 0 ? undefined : atMs - Math.max(...earlier)
}

/** Maps keep insertion order; an updated entry keeps its position. */
function dropOldest<Key>(map: Map<Key, unknown>): void {
  for (const key of map.keys()) {
    if (map.size <= BLOCKS_MAX) return
    map.delete(key)
  }
}

function median(values: readonly number[]): number | undefined {
  if (values.length === 0) return undefined
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const high = sorted[middle] as number
  return sorted.length % 2 === 1 ? high : (high + (sorted[middle - 1] as number)) / 2
}

/** The figures of a block without its lists. */
export type ContentionFigures = NonNullable<BlockSummary['contention']>

/** One entry per block number: another proposal of a number replaces the one before. */
export type ContentionSeries = {
  add(figures: ContentionFigures): void
  /** Adds blocks of the history. What the stream has sent stays. */
  addHistory(figures: readonly ContentionFigures[]): void
  /** Oldest first. */
  last(max: number): readonly ContentionFigures[]
  newest(): ContentionFigures | undefined
  medianEfficiency(): number | undefined
}

export function createContentionSeries(): ContentionSeries {
  let series: ContentionFigures[] = []
  const keep = (next: ContentionFigures[]): void => {
    series = next.slice(-BLOCKS_MAX)
  }
  return {
    add(figures) {
      const at = series.findLastIndex(({ block_number }) => block_number === figures.block_number)
      keep(at === -1 ? [...series, figures] : series.with(at, figures))
    },
    addHistory(figures) {
      const byNumber = new Map([...figures, ...series].map((each) => [each.block_number, each]))
      keep([...byNumber.values()].toSorted((a, b) => a.block_number - b.block_number))
    },
    last: (max) => series.slice(-max),
    newest: () => series.at(-1),
    medianEfficiency: () => median(series.map(({ parallel_efficiency_pct }) => parallel_efficiency_pct)),
  }
}
