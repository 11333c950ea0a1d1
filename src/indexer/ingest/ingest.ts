import { createBackoff } from '../../core/backoff.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import type { Upstream } from '../../upstreams/started-pool.ts'
import { StoreGone, type StoreProcess } from '../duckdb/process.ts'
import type { StoreRequest } from '../duckdb/protocol.ts'
import type { IndexerMetrics } from '../metrics.ts'
import { createBlockFetch } from './block-fetch.ts'
import { followBlocks } from './block-stream.ts'
import { EventQueue } from './event-queue.ts'
import { type FillOptions, type FillResult, fillRange } from './fill.ts'
import { type BlockLink, Frontier, type Step } from './frontier.ts'
import type { RawBlock } from './raw-block.ts'
import type { SlotRange } from './slot-ranges.ts'

export type IngestOptions = {
  readonly includeAccounts: boolean
  /** A batch is written when it has this many blocks, or when its first block has waited this long. */
  readonly batchBlocks: number
  readonly batchMs: number
  readonly heldMax: number
  readonly fill: FillOptions
}

export type IngestDeps = BaseDeps & {
  readonly upstream: Pick<Upstream, 'forwardAsync' | 'grpc' | 'bestSlot' | 'isAvailable'>
  readonly store: StoreProcess
  readonly metrics: IndexerMetrics
  /** Called after each attempt to write a batch, with the error if it was refused. */
  readonly onWrite?: (refused: Error | undefined) => void
}

export type IngestStatus = {
  /** The last slot that is written; undefined while there is none. */
  readonly headSlot: number | undefined
  /** The newest slot of the chain; undefined while no node reports it. */
  readonly tipSlot: number | undefined
  readonly held: number
  /** The slots that the frontier waits for, and why they have not come. */
  readonly waitsFor: (SlotRange & { readonly message: string }) | undefined
  readonly blocks: number
  readonly transactions: number
}

export type Ingest = {
  status(): IngestStatus
  /** Ends the run; blocks that are not written come again from the chain. */
  stop(): void
  /**
   * Resolves after `stop`. Rejects with IngestBroken when the store process has ended or does not accept a batch; the next run gets its unwritten
   * blocks, because accounts come only with the stream.
   */
  readonly ended: Promise<void>
}

/** The run cannot continue with this store process; the next run gets the unwritten blocks. */
export class IngestBroken extends Error {
  override readonly name = 'IngestBroken'
  readonly unwritten: readonly RawBlock[]

  constructor(unwritten: readonly RawBlock[], options: ErrorOptions) {
    super('ingest cannot continue with this store process', options)
    this.unwritten = unwritten
  }
}

/** A decoded block; the store process keeps its rows under `id`. */
type Pending = BlockLink & { readonly id: number; readonly raw: RawBlock; readonly transactions: number }

type Event =
  | { readonly kind: 'block'; readonly raw: RawBlock }
  | { readonly kind: 'slot'; readonly slot: number; readonly status: 'seen' | 'finalized' | 'dead' }
  | { readonly kind: 'filled'; readonly result: FillResult }
  | { readonly kind: 'tick' }
  | { readonly kind: 'gone' }
  | { readonly kind: 'stop' }

/** Number of queued events at which the stream is paused, and at which it is resumed. */
const QUEUE_HIGH = 64
const QUEUE_LOW = 16
/** Attempts to write the same batch before the store process is considered broken. */
const WRITE_TRIES = 4
/** A slot of the block stream that is older does not say where the chain is now. */
const STREAM_SILENCE_MS = 30_000
const FILL_RETRY = { firstMs: 200, maxMs: 10_000 }

/** Follows the block stream and writes batches: blocks in chain order, gaps filled before any later block, each batch complete or not at all. */
export function startIngest(options: IngestOptions, carried: readonly RawBlock[], deps: IngestDeps): Ingest {
  const run = new IngestRun(options, deps)
  return { status: () => run.status(), stop: () => run.stop(), ended: run.run(carried) }
}

/** The newest slot of the chain, by the nodes that take calls and by the block stream (0 where it is silent). Undefined when neither reports one. */
export function chainTip(
  { bestSlot, isAvailable }: Pick<Upstream, 'bestSlot' | 'isAvailable'>,
  streamSlot = 0,
): number | undefined {
  const tip = Math.max(isAvailable ? bestSlot : 0, streamSlot)
  return tip === 0 ? undefined : tip
}

/** One run, from the start of a store process to its end. Events are handled one at a time, in order. */
class IngestRun {
  readonly #options: IngestOptions
  readonly #deps: IngestDeps
  readonly #events = new EventQueue<Event>()
  readonly #frontier: Frontier<Pending>
  readonly #fillBackoff
  readonly #unwritten = new Map<number, RawBlock>()
  #batch: Pending[] = []
  #batchSinceMs = 0
  /** The slot after the last one that is written or in the batch. */
  #nextSlot: number
  #headSlot: number | undefined
  #finalizedSlot: number
  /** The newest slot of the block stream. It stands still while the stream waits for the store. */
  #streamSlot = 0
  #streamSeenMs = 0
  #isFilling = false
  #waitsFor: IngestStatus['waitsFor']
  #lastId = 0
  #blocks = 0
  #transactions = 0

  constructor(options: IngestOptions, deps: IngestDeps) {
    const { progress } = deps.store
    this.#options = options
    this.#deps = deps
    this.#frontier = new Frontier<Pending>(progress.recent, { heldMax: options.heldMax })
    this.#fillBackoff = createBackoff(FILL_RETRY, deps.random)
    this.#headSlot = progress.ranges.at(-1)?.to
    this.#nextSlot = (this.#headSlot ?? -1) + 1
    this.#finalizedSlot = progress.finalizedSlot
  }

  status(): IngestStatus {
    return {
      headSlot: this.#headSlot,
      tipSlot: chainTip(
        this.#deps.upstream,
        this.#deps.clock.monotonicMs() - this.#streamSeenMs < STREAM_SILENCE_MS ? this.#streamSlot : 0,
      ),
      held: this.#frontier.heldCount,
      waitsFor: this.#waitsFor,
      blocks: this.#blocks,
      transactions: this.#transactions,
    }
  }

  stop(): void {
    this.#events.push({ kind: 'stop' })
  }

  async run(carried: readonly RawBlock[]): Promise<void> {
    const { clock, metrics } = this.#deps
    const events = this.#events
    let isPaused = false
    using stream = followBlocks(this.#options, this.#deps, {
      onBlock(raw) {
        events.push({ kind: 'block', raw })
        if (events.size < QUEUE_HIGH || isPaused) return
        isPaused = true
        stream.pause()
      },
      onSlot: (slot, status) => events.push({ kind: 'slot', slot, status }),
      onLost: () => metrics.streamLosses.inc(),
    })
    const ticking = clock.setRepeating(Math.max(1, this.#options.batchMs / 4), () => events.push({ kind: 'tick' }))
    // Without this, its end would be noticed with the next block, which may never come.
    void this.#deps.store.ended.then(() => events.push({ kind: 'gone' }))
    for (const raw of carried) events.push({ kind: 'block', raw })
    try {
      for (let event = await events.take(); event.kind !== 'stop'; event = await events.take()) {
        await this.#handle(event)
        if (isPaused && events.size <= QUEUE_LOW) {
          isPaused = false
          stream.resume()
        }
      }
      await this.#flush()
    } catch (cause) {
      throw new IngestBroken([...this.#unwritten.values()], { cause })
    } finally {
      ticking.cancel()
    }
  }

  async #handle(event: Exclude<Event, { readonly kind: 'stop' }>): Promise<void> {
    switch (event.kind) {
      case 'block':
        return this.#addBlock(event.raw)
      case 'slot':
        this.#sawSlot(event.slot)
        if (event.status === 'finalized') this.#finalizedSlot = Math.max(this.#finalizedSlot, event.slot)
        if (event.status === 'dead') await this.#apply(this.#frontier.dropped(event.slot))
        return
      case 'filled':
        return this.#endFill(event.result)
      case 'gone':
        throw new StoreGone('the database process has ended')
      case 'tick': {
        const waitedMs = this.#deps.clock.monotonicMs() - this.#batchSinceMs
        if (this.#batch.length > 0 && waitedMs >= this.#options.batchMs) await this.#flush()
      }
    }
  }

  #sawSlot(slot: number): void {
    this.#streamSlot = Math.max(this.#streamSlot, slot)
    this.#streamSeenMs = this.#deps.clock.monotonicMs()
  }

  async #addBlock(raw: RawBlock): Promise<void> {
    const { store, log, metrics } = this.#deps
    const id = ++this.#lastId
    const decoded = await store.ask({ kind: 'decode', id, raw })
    if (!decoded.ok) {
      metrics.faults.inc()
      log.warn({ slot: raw.slot, source: raw.source, reason: decoded.fault }, 'block cannot be decoded')
      // The same block from getBlock may be complete; the frontier waits for it either way.
      this.#waitsFor = { from: raw.slot, to: raw.slot, message: decoded.fault }
      return
    }
    this.#sawSlot(raw.slot)
    this.#unwritten.set(id, raw)
    const released = this.#frontier.offer({ ...decoded.link, id, raw, transactions: decoded.transactions })
    if (released !== undefined) {
      this.#unwritten.delete(released.id)
      await store.ask({ kind: 'forget', ids: [released.id] })
    }
    await this.#advance()
  }

  /** Takes every step that the frontier allows; the rest waits for the next event. */
  async #advance(): Promise<void> {
    const { metrics } = this.#deps
    let step = this.#frontier.step()
    for (; step.kind === 'append' || step.kind === 'rewind'; step = this.#frontier.step()) await this.#apply(step)
    if (step.kind === 'fill') this.#startFill(step.range)
    metrics.held.set(this.#frontier.heldCount)
  }

  async #apply(step: Step<Pending>): Promise<void> {
    const { store, clock, log, metrics } = this.#deps
    if (step.kind === 'append') {
      if (this.#batch.length === 0) this.#batchSinceMs = clock.monotonicMs()
      this.#batch.push(step.block)
      this.#waitsFor = undefined
      if (this.#batch.length >= this.#options.batchBlocks) await this.#flush()
    } else if (step.kind === 'rewind') {
      await this.#flush()
      log.warn({ fromSlot: step.fromSlot }, 'fork: blocks from this slot on are written again')
      metrics.rewinds.inc()
      await store.ask({ kind: 'rewind', fromSlot: step.fromSlot })
      this.#nextSlot = Math.min(this.#nextSlot, step.fromSlot)
      if (this.#headSlot !== undefined) this.#headSlot = Math.min(this.#headSlot, step.fromSlot - 1)
    }
  }

  async #flush(): Promise<void> {
    const { store, clock, metrics } = this.#deps
    const blocks = this.#batch
    this.#batch = []
    const [first, last] = [blocks[0], blocks.at(-1)]
    if (first === undefined || last === undefined) return
    // The parent link of the very first block proves that the slots between its parent and itself are empty.
    const isFirstEver = store.progress.ranges.length === 0 && this.#blocks === 0
    const range = { from: isFirstEver ? first.parentSlot + 1 : this.#nextSlot, to: last.slot }
    const startedMs = clock.monotonicMs()
    // The hash of a block covers all blocks before it, so it identifies the content.
    const name = `${range.from}-${range.to}:${last.blockhash}`
    const ids = blocks.map(({ id }) => id)
    await this.#write({
      kind: 'write',
      ids,
      name,
      range,
      finalizedSlot: this.#finalizedSlot,
      tipSlot: Math.max(this.#streamSlot, last.slot),
    })
    this.#nextSlot = last.slot + 1
    this.#headSlot = last.slot
    for (const { id, transactions } of blocks) {
      this.#unwritten.delete(id)
      this.#transactions += transactions
    }
    this.#blocks += blocks.length
    metrics.wrote(blocks.length, (clock.monotonicMs() - startedMs) / 1000)
  }

  async #write(request: Extract<StoreRequest, { kind: 'write' }>): Promise<void> {
    const { store, log, metrics } = this.#deps
    for (let tries = 1; ; tries++) {
      try {
        await store.ask(request)
        this.#deps.onWrite?.(undefined)
        return
      } catch (cause) {
        this.#deps.onWrite?.(cause as Error)
        if (cause instanceof StoreGone || tries === WRITE_TRIES) throw cause
        metrics.retries.inc()
        log.warn({ err: cause, tries }, 'batch not written; trying again')
      }
    }
  }

  #startFill(range: SlotRange): void {
    if (this.#isFilling) return
    this.#isFilling = true
    this.#waitsFor = { ...range, message: 'being fetched' }
    this.#deps.metrics.gaps.inc()
    const fetch = createBlockFetch(this.#deps.upstream, 'confirmed')
    const events = this.#events
    void fillRange(range, fetch, this.#options.fill, (raw) => events.push({ kind: 'block', raw })).then(
      (result) => events.push({ kind: 'filled', result }),
      (error: unknown) => events.push({ kind: 'filled', result: { kind: 'later', reason: String(error) } }),
    )
  }

  async #endFill(result: FillResult): Promise<void> {
    const { clock, log } = this.#deps
    if (result.kind === 'later') {
      if (this.#waitsFor !== undefined) this.#waitsFor = { ...this.#waitsFor, message: result.reason }
      log.warn({ ...this.#waitsFor }, 'gap not filled yet')
      const retry: Event = { kind: 'filled', result: { kind: 'done' } }
      clock.setTimer(this.#fillBackoff.nextMs(), () => this.#events.push(retry))
      return
    }
    this.#isFilling = false
    await this.#advance()
    if (!this.#isFilling) this.#fillBackoff.reset()
  }
}
