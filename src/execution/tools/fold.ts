import { PAYLOADS } from '../../evm/event/payloads.ts'
import { EVENT } from '../../evm/event/type.ts'
import { BlockFold, type BlockSink, type DropReason } from '../../evm/fold/block.ts'
import type { ConflictExtras, ContentionData } from '../../evm/fold/contention.ts'
import type { LifecycleRecord } from '../../evm/fold/lifecycle-entry.ts'
import type { IncompleteReason } from '../../evm/fold/open-block.ts'
import type { TopAccesses } from '../../evm/fold/top-accesses.ts'
import { type Hex, toHex } from '../../evm/hex.ts'
import type { EventBatch } from '../../evm/ring/event-batch.ts'
import type { GapCause, ReaderStats } from '../../evm/ring/reader.ts'
import { openToolRing, type RingForm, readToEnd, readToolRing } from './open-ring.ts'

/** One line of `sluice ring fold`; the names are those of the stream. */
export type FoldLine = BlockLine | GapLine | { Lifecycle: LifecycleRecord } | TopLine

/** A block that ended, or why it gave no figures. */
export type BlockLine = {
  block_number: number
  /** The consensus id: several proposals may share a number. */
  block_hash: Hex
  /** Null where the two blocks before it are not known. */
  TPS: number | null
  ContentionData: ContentionData | null
  /** Fields beyond the published record; null without figures. */
  conflicts: ConflictExtras | null
  /** Why figures are missing; null when none are. */
  reason: DropReason | IncompleteReason | 'unfinished' | null
}

/** Events that the ring no longer holds. */
export type GapLine = { Gap: { from_seqno: number; to_seqno: number; cause: GapCause } }

export type TopLine = {
  TopAccesses: TopAccesses
  /** No count is too high by more than `error_max`. */
  accuracy: Record<'account' | 'storage', { seen: number; counters: number; error_max: number }>
}

export type FoldRingOptions = {
  /** Counters for accounts and for slots. With as many as there are keys the counts are exact. */
  counters: number
  top: number
}

/** Lifecycle records kept until the end; at 400 ms a block this is two days. */
const RECORDS_MAX = 2 ** 19

export type FoldSummary = {
  form: RingForm
  stats: ReaderStats
  fold: BlockFold['stats']
  unknownIds: number
  /** Lifecycle records omitted because there were too many. */
  recordsOmitted: number
}

/**
 * Folds everything in a ring with the code of the service: first a line for each block, then the lifecycle of every block in order of
 * first appearance, then the top accesses, whose counters are not reset in between.
 */
export async function* foldRing(path: string, options: FoldRingOptions): AsyncGenerator<FoldLine, FoldSummary> {
  using ring = await openToolRing(path)
  const reader = readToolRing(ring)
  const { sink, lines, begin, end, records } = createLineSink((id) => fold.lifecycle.recordOf(id))
  const fold: BlockFold = new BlockFold(
    { seed: 0, topAccesses: options, lifecycle: { completedMax: RECORDS_MAX, activeMax: RECORDS_MAX } },
    sink,
  )
  for (const part of readToEnd(reader, ring.file)) {
    if (part.kind === 'events') foldByBlock(fold, part.batch, { begin, end })
    else {
      fold.gap()
      lines.push({ Gap: { from_seqno: part.from, to_seqno: part.to, cause: part.cause } })
    }
    yield* lines.splice(0)
  }
  // A block that is still open has no end in this ring.
  fold.gap()
  for (const line of lines.splice(0)) yield 'reason' in line ? { ...line, reason: 'unfinished' } : line
  const all = records()
  for (const record of all.values()) yield { Lifecycle: record }
  const { account, storage } = fold.topAccesses
  yield {
    TopAccesses: fold.topAccesses.publish(),
    accuracy: {
      account: { seen: account.seen, counters: options.counters, error_max: account.errorMax },
      storage: { seen: storage.seen, counters: options.counters, error_max: storage.errorMax },
    },
  }
  const proposed = fold.lifecycle.seen
  return {
    form: ring.form,
    stats: reader.stats,
    fold: fold.stats,
    unknownIds: fold.lifecycle.stats.unknownIds,
    recordsOmitted: proposed - all.size,
  }
}

const ID_OFFSET = PAYLOADS.BLOCK_START.fields.id[1]
const ID_END = ID_OFFSET + 32

type Marks = { begin(id: Hex): void; end(record: LifecycleRecord | undefined): void }

/**
 * Folds a batch and reports the id of each block before it starts, because the fold reports a block that is executed again only by its
 * number, and its record at its end, because the fold does not report blocks that it has dropped.
 */
function foldByBlock(fold: BlockFold, batch: EventBatch, { begin, end }: Marks): void {
  let folded = 0
  for (let at = 0; at < batch.count; at++) {
    const type = batch.type(at)
    if (type === EVENT.BLOCK_START) {
      fold.fold(batch, folded, at)
      folded = at
      const payload = batch.payload(at)
      begin(payload === undefined || payload.length < ID_END ? '0x' : toHex(payload, ID_OFFSET, ID_END))
    }
    if (type !== EVENT.BLOCK_END) continue
    fold.fold(batch, folded, at + 1)
    folded = at + 1
    end(fold.lifecycle.recordAt(batch.blockSeqno(at)))
  }
  fold.fold(batch, folded)
}

/**
 * Turns the results of a fold into lines. Lifecycle records are copied at each step, because the fold drops blocks that the chain has
 * moved past.
 */
function createLineSink(recordOf: (id: Hex) => LifecycleRecord | undefined) {
  const lines: (BlockLine | GapLine)[] = []
  const seen = new Map<Hex, LifecycleRecord>()
  let openId: Hex = '0x'
  // An unterminated block is reported as dropped after the next one has begun.
  let previousId: Hex = '0x'
  let tps: number | null = null
  const end = (record: LifecycleRecord | undefined): void => {
    if (record === undefined) return
    const id = record.block_hash
    if (seen.has(id) || seen.size < RECORDS_MAX) seen.set(id, record)
  }
  const update = (id: Hex): void => end(recordOf(id))
  const push = (block_hash: Hex, line: Omit<BlockLine, 'TPS' | 'block_hash'>): void => {
    const { block_number, ...rest } = line
    lines.push({ block_number, block_hash, TPS: tps, ...rest })
    tps = null
    update(block_hash)
  }
  const none = { ContentionData: null, conflicts: null }
  const sink: BlockSink = {
    lifecycle: ({ block_hash }) => update(block_hash),
    tps(value) {
      tps = value ?? null
    },
    contention: (data, conflicts) =>
      push(openId, { block_number: data.block_number, ContentionData: data, conflicts, reason: null }),
    dropped: ({ number, reason }) =>
      push(reason === 'unterminated' ? previousId : openId, { block_number: number, ...none, reason }),
    incomplete: ({ number, reason }) => push(openId, { block_number: number, ...none, reason }),
  }
  const begin = (id: Hex): void => {
    previousId = openId
    openId = id
  }
  const records = (): ReadonlyMap<Hex, LifecycleRecord> => {
    for (const id of seen.keys()) update(id)
    return seen
  }
  return { sink, lines, begin, end, records }
}
