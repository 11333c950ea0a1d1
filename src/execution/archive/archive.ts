import assert from 'node:assert/strict'
import type { Hex } from '../../contract/stream-events.ts'
import type { Clock } from '../../core/clock.ts'
import type { NumberRange, NumberRanges } from '../../core/number-ranges.ts'
import type { WaitingWork, Work } from '../../core/work.ts'
import { openRecordLog, type RecordLog } from '../../platform/files/record-log.ts'
import { createLimitedLog, type LimitedLog } from '../../platform/telemetry/limited-log.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { BlockOutcome } from '../rpc/block-store.ts'
import { HeldBlock } from '../rpc/held-block.ts'
import type { BlockContent } from '../source/message.ts'
import { type ArchivedEntry, ArchiveIndex } from './archive-index.ts'
import {
  ARCHIVED_BODY_BYTES_MAX,
  ARCHIVED_HEAD_BYTES_MAX,
  decodeBody,
  decodeHead,
  encodeBlockHead,
  encodeBody,
  encodeOutcomeHead,
} from './archived-record.ts'

export type BlockArchiveOptions = {
  readonly folder: string
  readonly blocksMax: number
  readonly bytesMax: number
}

export type BlockArchiveDeps = { readonly log: Logger; readonly clock: Clock }

/** The limits are kept by removing files of this share of them. */
const SEGMENTS = 16
/** Blocks that wait to be written. A source that catches up can be faster than the disk; later blocks are then not archived. */
const WAITING_MAX = 64
const WAITING_BYTES_MAX = 64 * 1024 * 1024
/** Blocks read from disk that are kept in memory, by bytes. */
const CACHE_BYTES_MAX = 32 * 1024 * 1024
/** After a failed write the disk is not used for so long. */
const RETRY_MS = 10_000
/** A read that takes longer counts as failed, so that a stalled disk does not stop other requests. */
const READ_MS = 5000
const NO_BYTES = new Uint8Array()

/**
 * The last blocks on disk, abandoned proposals included, bounded in number and bytes, over restarts of the process. Writing and reading
 * happen on the thread pool. A failing disk costs blocks of the archive and nothing else.
 */
export class BlockArchive implements AsyncDisposable {
  /** Blocks that were not archived. */
  skipped = 0
  readonly #options: BlockArchiveOptions
  readonly #deps: BlockArchiveDeps
  readonly #log: RecordLog
  readonly #index: ArchiveIndex
  readonly #cache = new Map<Hex, HeldBlock>()
  #cacheBytes = 0
  readonly #readLog: LimitedLog
  #segmentBlocks = 0
  /** Blocks that wait to be written. */
  readonly #waiting = new Set<Hex>()
  #waitingBytes = 0
  #written: Promise<void> = Promise.resolve()
  #pausedUntilMs = Number.NEGATIVE_INFINITY
  #loaded = 0

  static async open(options: BlockArchiveOptions, deps: BlockArchiveDeps): Promise<BlockArchive> {
    const index = new ArchiveIndex()
    const log = await openRecordLog(
      {
        folder: options.folder,
        segmentBytes: Math.ceil(options.bytesMax / SEGMENTS),
        headBytesMax: ARCHIVED_HEAD_BYTES_MAX,
        bodyBytesMax: ARCHIVED_BODY_BYTES_MAX,
      },
      ({ head, place }) => {
        const decoded = decodeHead(head)
        if (decoded?.kind === 'block') index.add({ facts: decoded.facts, place, outcome: undefined })
        else if (decoded !== undefined) index.settle(decoded.id, decoded.kind)
      },
    )
    const archive = new BlockArchive(options, deps, log, index)
    await archive.#trim()
    return archive
  }

  private constructor(options: BlockArchiveOptions, deps: BlockArchiveDeps, log: RecordLog, index: ArchiveIndex) {
    this.#options = options
    this.#deps = deps
    this.#readLog = createLimitedLog(deps.clock)
    this.#log = log
    this.#index = index
  }

  get size(): number {
    return this.#index.size
  }

  get bytes(): number {
    return this.#log.bytes
  }

  get range(): NumberRange | undefined {
    return this.#index.range
  }

  get numbers(): NumberRanges {
    return this.#index.numbers
  }

  get chainId(): number | null {
    return this.byNumber(this.range?.to ?? -1)?.facts.chainId ?? null
  }

  byNumber(number: number): ArchivedEntry | undefined {
    return this.#index.byNumber(number)
  }

  byHash(hash: Hex): ArchivedEntry | undefined {
    return this.#index.byHash(hash)
  }

  byTxn(hash: Hex): Work<ArchivedEntry[]> {
    return this.#index.byTxn(hash)
  }

  highestFinal(): ArchivedEntry | undefined {
    return this.#index.highestFinal()
  }

  /** Writes a block in the background. A block that is there already is not written again. */
  add(content: BlockContent, held: HeldBlock): void {
    const { id } = content
    if (!this.#mayWait(held.bytes)) {
      this.skipped += 1
      return
    }
    this.#waiting.add(id)
    this.#waitingBytes += held.bytes
    this.#enqueue(async () => {
      try {
        await this.#write(content, held)
      } finally {
        this.#waiting.delete(id)
        this.#waitingBytes -= held.bytes
      }
    })
  }

  /** A block is final, or abandoned. Known at once, unless the block is still to be written. */
  settle(id: Hex, outcome: BlockOutcome): void {
    const isNews = this.#index.settle(id, outcome)
    if (!isNews && !this.#waiting.has(id)) return
    this.#enqueue(async () => {
      if (!isNews && !this.#index.settle(id, outcome)) return
      const facts = this.#index.byId(id)?.facts
      if (facts !== undefined && this.#index.hasTwoFinal(facts.number)) await this.#removeAll(facts)
      else await this.#log.append(encodeOutcomeHead(id, outcome), NO_BYTES)
    })
  }

  /** The block with its events, from the cache or the disk; undefined when it cannot be read any more. */
  *load(entry: ArchivedEntry): WaitingWork<HeldBlock | undefined> {
    const { id } = entry.facts
    const cached = this.#cache.get(id)
    if (cached !== undefined) return this.#remember(cached)
    let loaded: HeldBlock | undefined
    yield this.#withDeadline(async () => {
      const body = await this.#log.read(entry.place)
      const content = body === undefined ? undefined : await decodeBody(entry.facts, body)
      if (content === undefined) return this.#forgetDamaged(entry)
      loaded = this.#remember(new HeldBlock(content, `disk ${++this.#loaded}`))
    })
    return loaded
  }

  /** Resolves when everything that was added is written. */
  async flushed(): Promise<void> {
    await this.#written
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#written
    await this.#log[Symbol.asyncDispose]()
  }

  async #write(content: BlockContent, held: HeldBlock): Promise<void> {
    if (this.#index.byId(content.id)?.facts.hash === content.hash) return
    if (this.#isOfAnotherChain(content)) await this.#removeAll(content)
    const head = encodeBlockHead(content, held)
    const decoded = decodeHead(head)
    assert(decoded?.kind === 'block', 'the head of a block can be decoded')
    const place = await this.#log.append(head, await encodeBody(content))
    this.#index.add({ facts: decoded.facts, place, outcome: undefined })
    this.#segmentBlocks += 1
    await this.#trim()
  }

  #mayWait(bytes: number): boolean {
    if (this.#deps.clock.monotonicMs() < this.#pausedUntilMs) return false
    if (this.#waiting.size === 0) return true
    return this.#waiting.size < WAITING_MAX && this.#waitingBytes + bytes <= WAITING_BYTES_MAX
  }

  /** Writes are done one after the other. */
  #enqueue(write: () => Promise<void>): void {
    this.#written = this.#written.then(async () => {
      try {
        await write()
      } catch (err) {
        this.skipped += 1
        this.#pausedUntilMs = this.#deps.clock.monotonicMs() + RETRY_MS
        this.#deps.log.warn(
          { err, retryMs: RETRY_MS },
          'a block cannot be written to disk; JSON-RPC will not have it for long',
        )
      }
    })
  }

  /**
   * The source was replaced by another chain, for instance a new simulated one: it has another chain id, or blocks below all that are held.
   * One that has neither is known by its first final block, see `settle`. Until that is final it may be an abandoned proposal of this chain.
   */
  #isOfAnotherChain({ number, chainId }: BlockContent): boolean {
    const lowest = this.#index.recorded.at(0)?.from
    const newest = this.#index.byNumber(this.range?.to ?? -1)
    return (lowest !== undefined && number < lowest) || (newest !== undefined && newest.facts.chainId !== chainId)
  }

  async #removeAll({ number, chainId }: Pick<BlockContent, 'number' | 'chainId'>): Promise<void> {
    const { range } = this
    this.#deps.log.info(
      { number, chainId, held: range },
      'the source has another chain: the blocks on disk are removed',
    )
    while (this.#log.segments.length > 0) await this.#removeOldest()
  }

  async #trim(): Promise<void> {
    const { blocksMax, bytesMax } = this.#options
    if (this.#segmentBlocks >= Math.ceil(blocksMax / SEGMENTS)) {
      await this.#log.endSegment()
      this.#segmentBlocks = 0
    }
    while ((this.#index.size > blocksMax || this.#log.bytes > bytesMax) && this.#log.segments.length > 1)
      await this.#removeOldest()
  }

  async #removeOldest(): Promise<void> {
    const [oldest] = this.#log.segments
    if (oldest === undefined) return
    this.#index.removeSegment(oldest)
    await this.#log.removeOldest()
  }

  #forgetDamaged(entry: ArchivedEntry): void {
    const { number, id } = entry.facts
    this.#index.remove(entry)
    this.#deps.log.warn({ number, id }, 'a block on disk is damaged and is not served')
  }

  /** The cache is in order of last use. */
  #remember(held: HeldBlock): HeldBlock {
    this.#uncache(held.id)
    this.#cache.set(held.id, held)
    this.#cacheBytes += held.bytes
    for (const id of this.#cache.keys()) {
      if (this.#cacheBytes <= CACHE_BYTES_MAX || this.#cache.size === 1) break
      this.#uncache(id)
    }
    return held
  }

  #uncache(id: Hex): void {
    this.#cacheBytes -= this.#cache.get(id)?.bytes ?? 0
    this.#cache.delete(id)
  }

  /** Never rejects. */
  #withDeadline(run: () => Promise<void>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const deadline = this.#deps.clock.setTimer(READ_MS, resolve)
    run()
      .catch((err: unknown) =>
        this.#readLog((left) => this.#deps.log.warn({ err, ...left }, 'a block cannot be read from disk')),
      )
      .finally(() => {
        deadline.cancel()
        resolve()
      })
    return promise
  }
}
