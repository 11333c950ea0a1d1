import type { BlockSummary } from '../../contract/execution-routes.ts'
import type { ConflictData, ContentionData, FigureKind, Hex, TopAccesses } from '../../contract/stream-events.ts'
import { setBounded } from '../../core/bounded-map.ts'
import { LifecycleView } from './lifecycle-view.ts'

/** Blocks whose figures can be read by number. */
const BLOCKS_MAX = 512

/** Executed proposals of one number whose figures are kept. */
const PROPOSALS_MAX = 8

type ProposalFigures = {
  id: Hex | undefined
  tps: number | null
  contention: ContentionData | null
  conflicts: ConflictData | null
}

const NO_FIGURES: Readonly<ProposalFigures> = { id: undefined, tps: null, contention: null, conflicts: null }

/** The latest data of each kind, for REST and for snapshots. */
export class Views {
  readonly lifecycle = new LifecycleView()
  /** 0 until a window of blocks was whole. */
  tps = 0
  contention: ContentionData | undefined
  conflicts: ConflictData | undefined
  topAccesses: TopAccesses | undefined
  /** The newest block seen. */
  blockNumber = 0
  chainId: number | null = null
  /** The executed proposals of each number, the latest one last. */
  readonly #blocks = new Map<number, ProposalFigures[]>()

  blockEnded(number: number, id: Hex | undefined, tps: number | null): void {
    this.tps = tps ?? this.tps
    const proposals = this.#blocks.get(number) ?? []
    proposals.push({ ...NO_FIGURES, id, tps })
    if (proposals.length > PROPOSALS_MAX) proposals.shift()
    // A block that is executed again moves to the end.
    this.#blocks.delete(number)
    setBounded(this.#blocks, number, proposals, BLOCKS_MAX)
  }

  blockFolded(contention: ContentionData, conflicts: ConflictData): void {
    this.contention = contention
    this.conflicts = conflicts
    const figures = this.#blocks.get(contention.block_number)?.at(-1)
    if (figures !== undefined) Object.assign(figures, { id: contention.block_id, contention, conflicts })
  }

  /** From here on the figures of a number are those of its finalized proposal, or none if that has none. */
  blockFinalized(number: number, id: Hex): void {
    const proposals = this.#blocks.get(number)
    if (proposals === undefined) return
    this.#blocks.set(number, [proposals.findLast((one) => one.id === id) ?? { ...NO_FIGURES }])
  }

  /** An abandoned proposal has no figures, also where the finalized one of its number was not seen. */
  blockRejected(number: number, id: Hex): void {
    const others = this.#blocks.get(number)?.filter((one) => one.id !== id) ?? []
    if (others.length > 0) this.#blocks.set(number, others)
    else this.#blocks.delete(number)
  }

  /** The figures of the finalized proposal of a number, else of the latest one. */
  contentionOf(number: number): ContentionData | undefined {
    return this.#blocks.get(number)?.at(-1)?.contention ?? undefined
  }

  /** The last blocks, oldest first. */
  recentBlocks(count: number): BlockSummary[] {
    return [...this.#blocks].slice(-Math.min(count, BLOCKS_MAX)).map(([block_number, proposals]) => {
      const { tps, contention, conflicts } = proposals.at(-1) ?? NO_FIGURES
      return { block_number, tps, contention: contention === null ? null : withoutLists(contention), conflicts }
    })
  }

  /** The payloads that a new subscriber of a kind gets first, as JSON. */
  snapshot(kind: FigureKind): string[] {
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
