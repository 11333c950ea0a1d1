import type { BlockSummary } from '../../contract/execution-routes.ts'
import { median } from './block-log.ts'

/** The figures of a block without its lists. */
export type ContentionFigures = NonNullable<BlockSummary['contention']>

export type ContentionSeries = {
  add(figures: ContentionFigures): void
  /** Blocks from before the first one added. */
  addEarlier(figures: readonly ContentionFigures[]): void
  /** Oldest first. */
  last(max: number): readonly ContentionFigures[]
  newest(): ContentionFigures | undefined
  medianEfficiency(): number | undefined
}

const BLOCKS_MAX = 300

export function createContentionSeries(): ContentionSeries {
  let series: ContentionFigures[] = []
  const keep = (next: ContentionFigures[]): void => {
    series = next.slice(-BLOCKS_MAX)
  }
  return {
    add: (figures) => keep([...series, figures]),
    addEarlier(figures) {
      const first = series[0]?.block_number ?? Number.POSITIVE_INFINITY
      keep([...figures.filter(({ block_number }) => block_number < first), ...series])
    },
    last: (max) => series.slice(-max),
    newest: () => series.at(-1),
    medianEfficiency: () => median(series.map(({ parallel_efficiency_pct }) => parallel_efficiency_pct)),
  }
}
