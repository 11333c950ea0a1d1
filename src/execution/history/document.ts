import type { HistoryBlocks, History as HistoryBody } from '../../contract/execution-history.ts'
import type { Stage } from '../../contract/stream-events.ts'
import type { Clock } from '../../core/clock.ts'
import { gzipBytes } from '../../platform/http/gzip.ts'
import { contentionColumns } from './contention-columns.ts'
import type { History } from './history.ts'
import type { Proposal } from './proposals.ts'

/** The body of `GET /v1/history`, encoded. */
export type HistoryDocument = {
  readonly text: Buffer
  /** The same, compressed. */
  gzip(): Promise<Buffer>
}

export type HistoryDocumentDeps = {
  readonly clock: Pick<Clock, 'nowMs'>
  readonly history: History
  readonly isSimulated: () => boolean
}

/** A document is used for all requests of this long, so that many clients cost no more than one. */
const REUSED_MS = 1000

/** Makes the document at most once a second, on request, and compresses it at most once. */
export function createHistoryDocument(deps: HistoryDocumentDeps): () => HistoryDocument {
  let made: HistoryDocument | undefined
  let madeMs = 0
  return () => {
    const nowMs = deps.clock.nowMs()
    if (made !== undefined && nowMs >= madeMs && nowMs - madeMs < REUSED_MS) return made
    const text = Buffer.from(JSON.stringify(historyBody(deps, nowMs)))
    let packed: Promise<Buffer> | undefined
    made = { text, gzip: () => (packed ??= gzipBytes(text)) }
    madeMs = nowMs
    return made
  }
}

function historyBody({ history, isSimulated }: HistoryDocumentDeps, nowMs: number): HistoryBody {
  return {
    now_ms: nowMs,
    simulated: isSimulated(),
    seconds: history.seconds.columns(nowMs),
    blocks: blockColumns([...history.proposals.values()]),
    contention: contentionColumns(history.proposals),
    incidents: history.incidents.list(),
  }
}

function blockColumns(all: readonly Proposal[]): HistoryBlocks {
  const rows = all.flatMap(({ record, ...proposal }) => (record === undefined ? [] : [{ ...proposal, record }]))
  type Row = (typeof rows)[number]
  const column = <Value>(read: (row: Row) => Value): Value[] => rows.map(read)
  const numbers = (digits: number, read: (row: Row) => number | undefined | null): (number | null)[] =>
    rows.map((row) => rounded(read(row), digits))
  const reached = (stage: Stage) => numbers(1, ({ record }) => record.stage_timings_ms[stage])
  return {
    number: column(({ number }) => number),
    id: column(({ id }) => id),
    time_ms: column(({ timeMs }) => timeMs),
    block_time_ms: numbers(0, ({ blockTimeMs }) => blockTimeMs),
    txns: column(({ record }) => record.txn_count),
    gas_used: numbers(0, ({ record }) => record.gas_used),
    gas_limit: numbers(0, ({ gasLimit }) => gasLimit),
    tps: numbers(0, ({ tps }) => tps),
    stage: column(({ record }) => record.current_stage),
    voted_ms: reached('Voted'),
    finalized_ms: reached('Finalized'),
    verified_ms: reached('Verified'),
    rejected_ms: reached('Rejected'),
    execution_ms: numbers(3, ({ record }) => record.execution_time_ms),
    block_wall_time_ns: numbers(0, ({ figures }) => figures?.contention.block_wall_time_ns),
    total_tx_time_ns: numbers(0, ({ figures }) => figures?.contention.total_tx_time_ns),
    parallel_efficiency_pct: numbers(2, ({ figures }) => figures?.contention.parallel_efficiency_pct),
    total_unique_slots: numbers(0, ({ figures }) => figures?.contention.total_unique_slots),
    contended_slot_count: numbers(0, ({ figures }) => figures?.contention.contended_slot_count),
    contention_ratio: numbers(4, ({ figures }) => figures?.contention.contention_ratio),
    conflict_share: numbers(4, ({ figures }) => figures?.conflicts.conflict_share),
    depth: numbers(0, ({ figures }) => figures?.conflicts.depth),
  }
}

function rounded(value: number | undefined | null, digits: number): number | null {
  if (value === undefined || value === null) return null
  const scale = 10 ** digits
  return Math.round(value * scale) / scale
}
