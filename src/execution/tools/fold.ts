import { EVENT } from '../../evm/event/type.ts'
import { BlockFold, type BlockSink, type DropReason } from '../../evm/fold/block.ts'
import type { ConflictExtras, ContentionData } from '../../evm/fold/contention.ts'
import type { LifecycleRecord } from '../../evm/fold/lifecycle-entry.ts'
import type { Shortcoming } from '../../evm/fold/open-block.ts'
import type { TopAccesses } from '../../evm/fold/top-accesses.ts'
import { type Hex, toHex } from '../../evm/hex.ts'
import type { EventBatch } from '../../evm/ring/event-batch.ts'
import type { ReaderStats } from '../../evm/ring/reader.ts'
import { openToolRing, type RingForm, readToolRing } from '../source/open-ring.ts'
import { readToEnd } from './read-to-end.ts'

/** One line of `sluice ring fold`; the names are those of the stream. */
export type FoldLine = BlockLine | GapLine | { Lifecycle: LifecycleRecord } | TopLine

/** A block that ended, or why it gave no figures. */
export type BlockLine = {
  block_number: number
  /** The consensus id: several proposals may share a number. */
  block_hash: Hex
  TPS: number | null
  ContentionData: ContentionData | null
  /** What goes beyond the published record; null with it. */
  conflicts: ConflictExtras | null
  /** Why figures are missing; null when none are. */
  reason: DropReason | Shortcoming | 'unfinished' | null
}

/** Events that the ring no longer had. */
export type GapLine = { Gap: { from_seqno: number; to_seqno: number; cause: 'lapped' | 'dead-slot' } }

export type TopLine = {
  TopAccesses: TopAccesses
  /** How exact the counts are: none is too high by more than `error_max`. */
  accuracy: Record<'account' | 'storage', { seen: number; counters: number; error_max: number }>
}

export type FoldRingOptions = {
  /** Counters for accounts and for slots. As many as there are keys make the counts exact. */
  counters: number
  top: number
}

/** Records of blocks kept until the end; at 400 ms a block this is two days. */
const RECORDS_MAX = 2 ** 19

export type FoldSummary = {
  form: RingForm
  stats: ReaderStats
  fold: BlockFold['stats']
  unknownIds: number
  /** Lifecycle records left out because there were too many. */
  recordsLeftOut: number
}

/**
 * Folds all that a ring holds with the very code of the service: first a line for each block, then the lifecycle of every block in the
 * order in which they were first seen, then the top accesses. The counters of the latter are not reset in between.
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
  // A block that is still open has no end here: nothing more will come.
  fold.gap()
  for (const line of lines.splice(0)) yield 'reason' in line ? { ...line, reason: 'unfinished' } : line
  const kept = records()
  for (const record of kept.values()) yield { Lifecycle: record }
  const { account, storage } = fold.topAccesses
  yield {
    TopAccesses: fold.topAccesses.publish(),
    accuracy: {
      account: { seen: account.seen, counters: options.counters, error_max: account.errorMax },
      storage: { seen: storage.seen, counters: options.counters, error_max: storage.errorMax },
    },
  }
  const proposed = fold.lifecycle.sights
  return {
    form: ring.form,
    stats: reader.stats,
    fold: fold.stats,
    unknownIds: fold.lifecycle.stats.unknownIds,
    recordsLeftOut: proposed - kept.size,
  }
}

type Marks = { begin(id: Hex): void; end(record: LifecycleRecord | undefined): void }

/**
 * Tells which block begins before the fold hears of it; the fold itself tells of a block executed again only by its number. And tells what
 * a block has used when it ended: the fold is silent about one that it has dropped.
 */
function foldByBlock(fold: BlockFold, batch: EventBatch, { begin, end }: Marks): void {
  let folded = 0
  for (let at = 0; at < batch.count; at++) {
    const type = batch.type(at)
    if (type === EVENT.BLOCK_START) {
      fold.fold(batch, folded, at)
      folded = at
      const payload = batch.payload(at)
      begin(payload === undefined || payload.length < 32 ? '0x' : toHex(payload, 0, 32))
    }
    if (type !== EVENT.BLOCK_END) continue
    fold.fold(batch, folded, at + 1)
    folded = at + 1
    end(fold.lifecycle.recordAt(batch.blockSeqno(at)))
  }
  fold.fold(batch, folded)
}

/**
 * Turns what a fold tells into lines. Lifecycle records are taken again with each step, because the fold itself forgets blocks that
 * the chain has moved past.
 */
function createLineSink(recordOf: (id: Hex) => LifecycleRecord | undefined) {
  const lines: (BlockLine | GapLine)[] = []
  const seen = new Map<Hex, LifecycleRecord>()
  let openId: Hex = '0x'
  // A block left open is told as dropped when the next one has begun already.
  let previousId: Hex = '0x'
  let tps: number | null = null
  const end = (record: LifecycleRecord | undefined): void => {
    if (record === undefined) return
    const id = record.block_hash
    if (seen.has(id) || seen.size < RECORDS_MAX) seen.set(id, record)
  }
  const keep = (id: Hex): void => end(recordOf(id))
  const push = (block_hash: Hex, line: Omit<BlockLine, 'TPS' | 'block_hash'>): void => {
    const { block_number, ...rest } = line
    lines.push({ block_number, block_hash, TPS: tps, ...rest })
    tps = null
    keep(block_hash)
  }
  const none = { ContentionData: null, conflicts: null }
  const sink: BlockSink = {
    lifecycle: ({ block_hash }) => keep(block_hash),
    tps(value) {
      tps = value
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
    for (const id of seen.keys()) keep(id)
    return seen
  }
  return { sink, lines, begin, end, records }
}
