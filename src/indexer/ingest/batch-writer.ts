import type { Clock } from '../../core/clock.ts'
import { createLimitedLog, type LimitedLog } from '../../platform/telemetry/limited-log.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { IndexerMetrics } from '../metrics.ts'
import { StoreGone, type StoreProcess } from '../store/process.ts'
import type { StoreRequest } from '../store/protocol.ts'
import type { BlockLink } from './frontier.ts'
import type { RawBlock } from './raw-block.ts'

/** A decoded block; the store process keeps its rows under `id`. */
export type PendingBlock = BlockLink & {
  readonly id: number
  readonly raw: RawBlock
  readonly transactions: number
  /** A node returned it as the finalized block of its slot. */
  readonly isFinal?: boolean | undefined
}

export type BatchWriterOptions = {
  /** A batch is written when it has this many blocks, or when its first block has waited this long. */
  readonly batchBlocks: number
  readonly batchMs: number
}

export type BatchWriterDeps = {
  readonly store: StoreProcess
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: IndexerMetrics
  /** Called after each attempt to write a batch, with the error if it was refused. */
  readonly onWrite?: ((refused: Error | undefined) => void) | undefined
  /** What the chain has reached, to be stored with a batch. */
  progress(): { readonly finalizedSlot: number; readonly tipSlot: number }
  onWritten(blocks: readonly PendingBlock[]): void
  /** These blocks are not written. */
  release(blocks: readonly PendingBlock[]): Promise<void>
}

/** Attempts to write the same batch before the store process is considered broken. */
const WRITE_ATTEMPTS_MAX = 4
export const MOVE_FAILED = 'final states of accounts were not moved to their table; tried again after more batches'

/** Writes blocks in batches, in the order of the chain. Blocks of an abandoned fork are deleted in the same write as the blocks that replace them. */
export class BatchWriter {
  readonly #options: BatchWriterOptions
  readonly #deps: BatchWriterDeps
  readonly #moveLog: LimitedLog
  #batch: PendingBlock[] = []
  #batchSinceMs = 0
  #headSlot: number | undefined
  /** Written blocks from this slot on are to be deleted with the next batch. */
  #rewindFrom: number | undefined
  #blocks = 0
  #transactions = 0

  constructor(options: BatchWriterOptions, deps: BatchWriterDeps) {
    this.#options = options
    this.#deps = deps
    this.#moveLog = createLimitedLog(deps.clock)
    this.#headSlot = deps.store.progress.ranges.at(-1)?.to
  }

  /** The last slot that is written; undefined while there is none. */
  get headSlot(): number | undefined {
    return this.#headSlot
  }

  get written(): { readonly blocks: number; readonly transactions: number } {
    return { blocks: this.#blocks, transactions: this.#transactions }
  }

  async append(block: PendingBlock): Promise<void> {
    if (this.#batch.length === 0) this.#batchSinceMs = this.#deps.clock.monotonicMs()
    this.#batch.push(block)
    if (this.#batch.length >= this.#options.batchBlocks) await this.flush()
  }

  /** The last `blocks` blocks, from this slot on, are of an abandoned fork, and the next one appended replaces them. */
  async replaceFrom(fromSlot: number, blocks: number): Promise<void> {
    const { log, metrics } = this.#deps
    const unwritten = this.#batch.filter(({ slot }) => slot >= fromSlot)
    this.#batch = this.#batch.filter(({ slot }) => slot < fromSlot)
    await this.#deps.release(unwritten)
    metrics.rewinds.inc()
    if ((this.#headSlot ?? -1) < fromSlot) return
    const written = blocks - unwritten.length
    log.warn({ fromSlot, blocks: written }, 'fork: written blocks from this slot on are replaced')
    metrics.replaced.inc(written)
    this.#rewindFrom = Math.min(this.#rewindFrom ?? fromSlot, fromSlot)
  }

  /** Deletes the blocks from this slot on now: the node marked them dead, and what follows is not known. */
  async deleteFrom(fromSlot: number): Promise<void> {
    const { store, log, metrics } = this.#deps
    await this.#deps.release(this.#batch.filter(({ slot }) => slot >= fromSlot))
    this.#batch = this.#batch.filter(({ slot }) => slot < fromSlot)
    const from = Math.min(this.#rewindFrom ?? fromSlot, fromSlot)
    metrics.rewinds.inc()
    if ((this.#headSlot ?? -1) < from) return
    log.warn({ fromSlot: from }, 'dead: written blocks from this slot on are deleted')
    await store.ask({ kind: 'rewind', fromSlot: from })
    this.#rewindFrom = undefined
    this.#headSlot = from - 1
  }

  async flushIfDue(): Promise<void> {
    const waitedMs = this.#deps.clock.monotonicMs() - this.#batchSinceMs
    if (this.#batch.length > 0 && waitedMs >= this.#options.batchMs) await this.flush()
  }

  async flush(): Promise<void> {
    const { clock, metrics } = this.#deps
    const blocks = this.#batch
    this.#batch = []
    const [first, last] = [blocks[0], blocks.at(-1)]
    if (first === undefined || last === undefined) return
    // The parent link of the first block proves that the slots between its parent, which is the block before it, and itself are empty.
    const range = { from: first.parentSlot + 1, to: last.slot }
    const startedMs = clock.monotonicMs()
    const { finalizedSlot, tipSlot } = this.#deps.progress()
    await this.#write({
      kind: 'write',
      ids: blocks.map(({ id }) => id),
      // The hash of a block covers all blocks before it, so it identifies the content.
      name: `${range.from}-${range.to}:${last.blockhash}`,
      range,
      rewindFrom: this.#rewindFrom,
      finalizedSlot,
      tipSlot: Math.max(tipSlot, last.slot),
    })
    this.#rewindFrom = undefined
    this.#headSlot = last.slot
    this.#blocks += blocks.length
    this.#transactions += blocks.reduce((sum, { transactions }) => sum + transactions, 0)
    this.#deps.onWritten(blocks)
    metrics.wrote(blocks.length, (clock.monotonicMs() - startedMs) / 1000)
  }

  async #write(request: Extract<StoreRequest, { kind: 'write' }>): Promise<void> {
    const { store, log, metrics, onWrite } = this.#deps
    for (let attempts = 1; ; attempts++) {
      try {
        const reason = await store.ask(request)
        if (reason !== null) this.#moveLog((left) => log.warn({ reason, ...left }, MOVE_FAILED))
        onWrite?.(undefined)
        return
      } catch (cause) {
        onWrite?.(cause as Error)
        if (cause instanceof StoreGone || attempts === WRITE_ATTEMPTS_MAX) throw cause
        metrics.retries.inc()
        log.warn({ err: cause, attempts }, 'batch not written; trying again')
      }
    }
  }
}
