import type { BlockSummary } from '../../contract/execution-routes.ts'
import type { ContentionData, Lifecycle, Stage } from '../../contract/stream-events.ts'

/** The stages of a block, in order. */
export const STAGES: readonly Stage[] = ['Proposed', 'Voted', 'Finalized', 'Verified', 'Rejected']

/** One proposal, as far as this page has seen it. */
export type BlockEntry = {
  readonly hash: string
  readonly number: number
  readonly stage: Stage
  readonly txnCount: number
  readonly gasUsed: number | null
  /** Milliseconds since Proposed, for each stage that was seen. */
  readonly reachedMs: Partial<Record<Stage, number>>
}

/** Blocks kept for the lanes, the heat strip, the charts and the views; about two minutes at 400 ms. */
const BLOCKS_MAX = 300
/** Stage times kept for the medians of the lanes. */
const TIMES_MAX = 100

export type BlockLog = {
  addLifecycle(change: Lifecycle): void
  addContention(data: ContentionData): void
  /** Newest first. */
  inStage(stage: Stage, max: number): BlockEntry[]
  countIn(stage: Stage): number
  /** Median time that blocks spent before they entered the stage. */
  medianBeforeMs(stage: Stage): number | undefined
  find(number: number): BlockEntry[]
  contention(number: number): ContentionData | undefined
  /** Oldest first. */
  contentions(max: number): ContentionData[]
  newest(): number | undefined
}

export function createBlockLog(): BlockLog {
  const entries = new Map<string, BlockEntry>()
  const contentions = new Map<number, ContentionData>()
  const beforeMs = new Map<Stage, number[]>()
  let newest: number | undefined

  function update(number: number): void {
    newest = newest === undefined ? number : Math.max(newest, number)
  }

  return {
    addLifecycle(change) {
      update(change.block_number)
      const before = entries.get(change.block_hash)
      entries.set(change.block_hash, {
        hash: change.block_hash,
        number: change.block_number,
        stage: change.to_stage,
        txnCount: change.txn_count,
        gasUsed: change.gas_used,
        reachedMs: { Proposed: 0, ...before?.reachedMs, [change.to_stage]: change.block_age_ms },
      })
      dropOldest(entries)
      if (change.time_in_previous_stage_ms === null || before?.stage === change.to_stage) return
      const times = beforeMs.get(change.to_stage) ?? []
      times.push(change.time_in_previous_stage_ms)
      if (times.length > TIMES_MAX) times.shift()
      beforeMs.set(change.to_stage, times)
    },
    addContention(data) {
      update(data.block_number)
      contentions.delete(data.block_number)
      contentions.set(data.block_number, data)
      dropOldest(contentions)
    },
    inStage: (stage, max) =>
      [...entries.values()]
        .filter((entry) => entry.stage === stage)
        .toSorted((a, b) => b.number - a.number)
        .slice(0, max),
    countIn: (stage) => entries.values().reduce((count, entry) => count + (entry.stage === stage ? 1 : 0), 0),
    medianBeforeMs: (stage) => median(beforeMs.get(stage) ?? []),
    find: (number) => [...entries.values()].filter((entry) => entry.number === number),
    contention: (number) => contentions.get(number),
    contentions: (max) => [...contentions.values()].slice(-max),
    newest: () => newest,
  }
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
  /** Adds blocks from before the first one. */
  addEarlier(figures: readonly ContentionFigures[]): void
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
    addEarlier(figures) {
      const first = series[0]?.block_number ?? Number.POSITIVE_INFINITY
      keep([...figures.filter(({ block_number }) => block_number < first), ...series])
    },
    last: (max) => series.slice(-max),
    newest: () => series.at(-1),
    medianEfficiency: () => median(series.map(({ parallel_efficiency_pct }) => parallel_efficiency_pct)),
  }
}
