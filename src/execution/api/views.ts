import type { BlockSummary } from '../../contract/execution-routes.ts'
import type { ConflictData, ContentionData, MetricKind, TopAccesses } from '../../contract/stream-events.ts'
import { LifecycleView } from './lifecycle-view.ts'

/** Blocks whose figures can be read by number. */
const BLOCKS_MAX = 512

type BlockFigures = { tps: number; contention: ContentionData | null; conflicts: ConflictData | null }

/** The latest data of each kind, for REST and for snapshots. */
export class Views {
  readonly lifecycle = new LifecycleView()
  /** 0 until the first block has ended. */
  tps = 0
  contention: ContentionData | undefined
  conflicts: ConflictData | undefined
  topAccesses: TopAccesses | undefined
  /** The newest block seen. */
  blockNumber = 0
  chainId: number | null = null
  readonly #blocks = new Map<number, BlockFigures>()

  blockEnded(number: number, tps: number): void {
    this.tps = tps
    // A block that is executed again moves to the end.
    this.#blocks.delete(number)
    this.#blocks.set(number, { tps, contention: null, conflicts: null })
    if (this.#blocks.size > BLOCKS_MAX) this.#blocks.delete(this.#blocks.keys().next().value as number)
  }

  blockFolded(contention: ContentionData, conflicts: ConflictData): void {
    this.contention = contention
    this.conflicts = conflicts
    const figures = this.#blocks.get(contention.block_number)
    if (figures === undefined) return
    figures.contention = contention
    figures.conflicts = conflicts
  }

  contentionOf(number: number): ContentionData | undefined {
    return this.#blocks.get(number)?.contention ?? undefined
  }

  /** The last blocks, oldest first. */
  recentBlocks(count: number): BlockSummary[] {
    return [...this.#blocks]
      .slice(-Math.min(count, BLOCKS_MAX))
      .map(([block_number, { tps, contention, conflicts }]) => ({
        block_number,
        tps,
        contention: contention === null ? null : withoutLists(contention),
        conflicts,
      }))
  }

  /** The payloads that a new subscriber of a kind gets first, as JSON. */
  snapshot(kind: MetricKind): string[] {
    switch (kind) {
      case 'TPS':
        return this.tps > 0 ? [String(this.tps)] : []
      case 'ContentionData':
        return asJson(this.contention)
      case 'ConflictData':
        return asJson(this.conflicts)
      case 'TopAccesses':
        return asJson(this.topAccesses)
      case 'Lifecycle':
        return this.lifecycle.activeChanges().map((change) => JSON.stringify(change))
    }
  }
}

function asJson(value: unknown): string[] {
  return value === undefined ? [] : [JSON.stringify(value)]
}

function withoutLists(data: ContentionData): NonNullable<BlockSummary['contention']> {
  const { top_contended_slots: _slots, top_contended_contracts: _contracts, contract_edges: _edges, ...figures } = data
  return figures
}
