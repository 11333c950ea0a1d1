import type { History, HistoryBlocks, HistoryContention } from '../../contract/execution-history.ts'
import type { ConflictData, ContentionData, Stage } from '../../contract/stream-events.ts'
import type { BlockEntry, ContentionFigures } from './block-log.ts'
import type { Incident } from './incident-log.ts'
import { historyIncident } from './incident-log.ts'
import type { TimePoint } from './time-series.ts'

/** The figures of ConflictData that the page shows. */
export type ConflictFigures = Pick<ConflictData, 'block_number' | 'block_id' | 'conflict_share' | 'depth'>

/** What the page takes from `GET /v1/history`, on the clock of this device. */
export type PageHistory = {
  readonly tps: readonly TimePoint[]
  readonly gas: readonly TimePoint[]
  readonly blockTime: readonly TimePoint[]
  /** Oldest first. */
  readonly blocks: readonly BlockEntry[]
  readonly figures: readonly ContentionFigures[]
  readonly conflicts: readonly ConflictFigures[]
  /** Oldest first; the lists have only the slots and contracts that are most contended over all of them. */
  readonly contentions: readonly ContentionData[]
  readonly incidents: readonly Omit<Incident, 'id'>[]
}

/** `aheadMs`: by how much the clock of this device is ahead of the clock of the service. */
export function readHistory(history: History, aheadMs: number): PageHistory {
  const { seconds, blocks, contention, incidents } = history
  const points = (values: readonly (number | null)[]): TimePoint[] =>
    values.flatMap((value, at) =>
      value === null ? [] : [{ atMs: seconds.from_ms + at * seconds.step_ms + aheadMs, value }],
    )
  const rows = blocks.number.map((_, at) => at)
  const figures = rows.flatMap((at) => figuresAt(blocks, at) ?? [])
  return {
    tps: points(seconds.tps),
    gas: points(seconds.gas_used),
    blockTime: points(seconds.block_time_ms),
    blocks: rows.map((at) => entryAt(blocks, at, aheadMs)),
    figures,
    conflicts: rows.flatMap((at) => conflictsAt(blocks, at) ?? []),
    contentions: contentionsOf(contention, new Map(figures.map((each) => [each.block_id, each]))),
    incidents: incidents.map((incident) => historyIncident(incident, aheadMs)),
  }
}

function entryAt(blocks: HistoryBlocks, at: number, aheadMs: number): BlockEntry {
  const reached: [Stage, number | null | undefined][] = [
    ['Proposed', 0],
    ['Voted', blocks.voted_ms[at]],
    ['Finalized', blocks.finalized_ms[at]],
    ['Verified', blocks.verified_ms[at]],
    ['Rejected', blocks.rejected_ms[at]],
  ]
  return {
    hash: blocks.id[at] ?? '',
    number: blocks.number[at] ?? 0,
    stage: blocks.stage[at] ?? 'Proposed',
    txnCount: blocks.txns[at] ?? 0,
    gasUsed: blocks.gas_used[at] ?? null,
    timeMs: (blocks.time_ms[at] ?? 0) + aheadMs,
    reachedMs: Object.fromEntries(reached.filter(([, ms]) => ms != null)) as BlockEntry['reachedMs'],
  }
}

function figuresAt(blocks: HistoryBlocks, at: number): ContentionFigures | undefined {
  const block_id = blocks.id[at]
  const block_number = blocks.number[at]
  const parallel_efficiency_pct = blocks.parallel_efficiency_pct[at]
  const contention_ratio = blocks.contention_ratio[at]
  if (block_id === undefined || block_number === undefined) return undefined
  if (parallel_efficiency_pct == null || contention_ratio == null) return undefined
  return {
    block_number,
    block_id,
    parallel_efficiency_pct,
    contention_ratio,
    block_wall_time_ns: blocks.block_wall_time_ns[at] ?? 0,
    total_tx_time_ns: blocks.total_tx_time_ns[at] ?? 0,
    total_unique_slots: blocks.total_unique_slots[at] ?? 0,
    contended_slot_count: blocks.contended_slot_count[at] ?? 0,
    total_txn_count: blocks.txns[at] ?? 0,
  }
}

function conflictsAt(blocks: HistoryBlocks, at: number): ConflictFigures | undefined {
  const block_id = blocks.id[at]
  const block_number = blocks.number[at]
  const conflict_share = blocks.conflict_share[at]
  const depth = blocks.depth[at]
  if (block_id === undefined || block_number === undefined || conflict_share == null || depth == null) return undefined
  return { block_number, block_id, conflict_share, depth }
}

function contentionsOf(from: HistoryContention, figures: ReadonlyMap<string, ContentionFigures>): ContentionData[] {
  return from.id.flatMap((id, at) => {
    const own = figures.get(id)
    if (own === undefined) return []
    return {
      ...own,
      top_contended_slots: groups(from.top_contended_slots[at], 3).flatMap(
        ([index = -1, txn_count = 0, access_count = 0]) => {
          const slot = from.slots[index]
          return slot === undefined ? [] : { address: slot[0], slot: slot[1], txn_count, access_count }
        },
      ),
      top_contended_contracts: groups(from.top_contended_contracts[at], 4).flatMap(
        ([index = -1, total_slots = 0, contended_slots = 0, total_accesses = 0]) => {
          const address = from.contracts[index]
          if (address === undefined) return []
          const contention_score = total_slots === 0 ? 0 : contended_slots / total_slots
          return { address, total_slots, contended_slots, total_accesses, contention_score }
        },
      ),
      contract_edges: groups(from.contract_edges[at], 3).flatMap(([a = -1, b = -1, shared_txn_count = 0]) => {
        const contract_a = from.contracts[a]
        const contract_b = from.contracts[b]
        return contract_a === undefined || contract_b === undefined ? [] : { contract_a, contract_b, shared_txn_count }
      }),
    }
  })
}

function groups(flat: readonly number[] | undefined, size: number): number[][] {
  return Array.from({ length: Math.floor((flat?.length ?? 0) / size) }, (_, at) =>
    (flat ?? []).slice(at * size, (at + 1) * size),
  )
}
