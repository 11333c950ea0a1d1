import { ExecRecorder } from '../event/recorder.ts'
import type { RingControl } from '../ring/layout.ts'
import type { RingReader } from '../ring/reader.ts'
import { createSmallRing, openReader } from '../ring/test-ring.ts'
import { recordBlock, type TestBlock } from '../test-block.ts'
import { BlockFold, type BlockSink } from './block.ts'
import type { ConflictExtras, ContentionData } from './contention.ts'
import type { LifecycleChange } from './lifecycle-entry.ts'

/** For tests: everything a fold has reported, and in which order. */
export type FoldLog = {
  order: string[]
  /** Undefined where the window is not whole. */
  tps: (number | undefined)[]
  contention: { data: ContentionData; extras: ConflictExtras }[]
  lifecycle: LifecycleChange[]
  dropped: Parameters<BlockSink['dropped']>[0][]
  incomplete: Parameters<BlockSink['incomplete']>[0][]
}

export function createFoldLog(): FoldLog & { sink: BlockSink } {
  const log: FoldLog = { order: [], tps: [], contention: [], lifecycle: [], dropped: [], incomplete: [] }
  const sink: BlockSink = {
    lifecycle(change) {
      log.order.push(`${change.to_stage} ${change.block_number}`)
      log.lifecycle.push(change)
    },
    tps(tps, blockNumber) {
      log.order.push(`TPS ${blockNumber}`)
      log.tps.push(tps)
    },
    contention(data, extras) {
      log.order.push(`ContentionData ${data.block_number}`)
      log.contention.push({ data, extras })
    },
    dropped(block) {
      log.order.push(`dropped ${block.number} ${block.reason}`)
      log.dropped.push(block)
    },
    incomplete(block) {
      log.order.push(`incomplete ${block.number} ${block.reason}`)
      log.incomplete.push(block)
    },
  }
  return { ...log, sink }
}

/** Folds everything a reader has, gaps included. */
export function foldAll(fold: BlockFold, reader: RingReader): void {
  for (;;) {
    const result = reader.poll(0)
    if (result.kind === 'events') fold.fold(reader.batch)
    else if (result.kind === 'gap') fold.gap()
    else return
  }
}

export type FoldRingOptions = { seed?: number; isLarge?: boolean; counters?: number; control?: RingControl }

/** A ring that holds a complete test block, its recorder, its reader and a fold. */
export function createFoldRing({ seed = 1, isLarge = false, counters = 1000, control }: FoldRingOptions = {}) {
  const ring = createSmallRing({
    capacity: isLarge ? 2 ** 18 : 2 ** 12,
    payloadBytes: isLarge ? 2 ** 26 : 2 ** 20,
    windowStepBytes: 2 ** 14,
    ...(control === undefined ? {} : { control }),
  })
  const recorder = new ExecRecorder(ring.writer)
  const log = createFoldLog()
  const fold = new BlockFold({ seed, topAccesses: { counters, top: 10 } }, log.sink)
  const reader = openReader(ring.source, { seqno: (control?.lastSeqno ?? 0) + 1 })
  const run = (): FoldLog => {
    recorder.flush()
    foldAll(fold, reader)
    return log
  }
  return { ...ring, recorder, log, fold, reader, run }
}

export function foldBlocks(blocks: readonly TestBlock[], options: FoldRingOptions = {}): FoldLog {
  const { recorder, log, run } = createFoldRing(options)
  for (const block of blocks) {
    recordBlock(recorder, block)
    run()
  }
  return log
}
