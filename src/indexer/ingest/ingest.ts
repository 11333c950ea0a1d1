import { createBackoff } from '../../core/backoff.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import type { Upstream } from '../../upstreams/upstream.ts'
import type { IndexerMetrics } from '../metrics.ts'
import { StoreGone, type StoreProcess } from '../store/process.ts'
import { BatchWriter, type BatchWriterOptions, type PendingBlock } from './batch-writer.ts'
import { type BlockFetch, createBlockFetch, type RefusedBlocks } from './block-fetch.ts'
import { followBlocks } from './block-stream.ts'
import { EventQueue } from './event-queue.ts'
import { type FillOptions, type FillResult, fillRange } from './fill.ts'
import { type BankOfNode, FinalBanks } from './final-banks.ts'
import { Frontier, type Step } from './frontier.ts'
import type { RawBlock } from './raw-block.ts'
import type { SlotRange } from './slot-ranges.ts'

export type IngestOptions = BatchWriterOptions & {
  readonly includeAccounts: boolean
  readonly heldMax: number
  readonly fill: FillOptions
}

export type IngestDeps = BaseDeps & {
  readonly upstream: Pick<Upstream, 'forwardAsync' | 'each' | 'grpc' | 'bestSlot' | 'isAvailable'>
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

type Event =
  | {
      readonly kind: 'block'
      readonly raw: RawBlock
      readonly bank?: BankOfNode | undefined
      /** A node returned it as the finalized block of its slot. */
      readonly isFinal?: boolean
    }
  | {
      readonly kind: 'slot'
      readonly slot: number
      readonly status: 'seen' | 'finalized' | 'dead'
      readonly bank: BankOfNode | undefined
    }
  | { readonly kind: 'filled'; readonly range: SlotRange; readonly result: FillResult }
  | { readonly kind: 'retry-fill' }
  | { readonly kind: 'tick' }
  | { readonly kind: 'store-ended' }
  | { readonly kind: 'stop' }

/** Number of queued events at which the stream is paused, and at which it is resumed. */
const QUEUE_HIGH = 64
const QUEUE_LOW = 16
/** A slot of the block stream that is older does not say where the chain is now. */
const STREAM_SILENCE_MS = 30_000
const FILL_RETRY = { firstMs: 200, maxMs: 10_000 }

/** Follows the block stream and writes batches: blocks in chain order, gaps filled before any later block, each batch complete or not at all. */
export function startIngest(options: IngestOptions, unwritten: readonly RawBlock[], deps: IngestDeps): Ingest {
  const run = new IngestRun(options, deps)
  return { status: () => run.status(), stop: () => run.stop(), ended: run.run(unwritten) }
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
  readonly #frontier: Frontier<PendingBlock>
  readonly #writer: BatchWriter
  readonly #banks = new FinalBanks()
  readonly #fetches: { readonly finalized: BlockFetch; readonly confirmed: BlockFetch }
  readonly #fillBackoff
  readonly #unwritten = new Map<number, RawBlock>()
  /** Up to this slot the blocks of the chain are final. */
  #finalizedSlot: number
  /** The newest slot that a node finalized. The chain here may have another block there, until it is replaced. */
  #finalizedTip = 0
  /** The newest slot of the block stream. It stands still while the stream waits for the store. */
  #streamSlot = 0
  #streamSeenMs = 0
  #isFilling = false
  /** The range of the last fill, until a block of it was of use. */
  #filled: SlotRange | undefined
  #waitsFor: IngestStatus['waitsFor']
  #lastId = 0

  constructor(options: IngestOptions, deps: IngestDeps) {
    const { store, clock, log, metrics, onWrite } = deps
    this.#options = options
    this.#deps = deps
    const { recent, ranges } = store.progress
    this.#frontier = new Frontier<PendingBlock>(recent, { heldMax: options.heldMax, firstSlot: ranges.at(-1)?.from })
    this.#writer = new BatchWriter(options, {
      store,
      clock,
      log,
      metrics,
      onWrite,
      progress: () => ({ finalizedSlot: this.#finalizedSlot, tipSlot: this.#streamSlot }),
      onWritten: (blocks) => this.#forgetRaw(blocks),
      release: (blocks) => this.#release(blocks),
    })
    const refused: RefusedBlocks = new Map()
    this.#fetches = {
      finalized: createBlockFetch(deps.upstream, 'finalized', refused),
      confirmed: createBlockFetch(deps.upstream, 'confirmed', refused),
    }
    this.#fillBackoff = createBackoff(FILL_RETRY, deps.random)
    this.#finalizedSlot = store.progress.finalizedSlot
  }

  status(): IngestStatus {
    return {
      headSlot: this.#writer.headSlot,
      tipSlot: chainTip(
        this.#deps.upstream,
        this.#deps.clock.monotonicMs() - this.#streamSeenMs < STREAM_SILENCE_MS ? this.#streamSlot : 0,
      ),
      held: this.#frontier.heldCount,
      waitsFor: this.#waitsFor,
      ...this.#writer.written,
    }
  }

  stop(): void {
    this.#events.push({ kind: 'stop' })
  }

  async run(unwritten: readonly RawBlock[]): Promise<void> {
    const { clock, metrics } = this.#deps
    const events = this.#events
    let isPaused = false
    using stream = followBlocks(this.#options, this.#deps, {
      onBlock(raw, bank) {
        events.push({ kind: 'block', raw, bank })
        if (events.size < QUEUE_HIGH || isPaused) return
        isPaused = true
        stream.pause()
      },
      onSlot: (slot, status, bank) => events.push({ kind: 'slot', slot, status, bank }),
      onLost: () => metrics.streamLosses.inc(),
    })
    const ticking = clock.setRepeating(Math.max(1, this.#options.batchMs / 4), () => events.push({ kind: 'tick' }))
    // Without this, its end would be noticed with the next block, which may never come.
    void this.#deps.store.ended.then(() => events.push({ kind: 'store-ended' }))
    for (const raw of unwritten) events.push({ kind: 'block', raw })
    try {
      for (let event = await events.take(); event.kind !== 'stop'; event = await events.take()) {
        await this.#handle(event)
        if (isPaused && events.size <= QUEUE_LOW) {
          isPaused = false
          stream.resume()
        }
      }
      await this.#writer.flush()
    } catch (cause) {
      throw new IngestBroken([...this.#unwritten.values()], { cause })
    } finally {
      ticking.cancel()
    }
  }

  async #handle(event: Exclude<Event, { readonly kind: 'stop' }>): Promise<void> {
    switch (event.kind) {
      case 'block':
        return this.#addBlock(event)
      case 'slot':
        this.#sawSlot(event.slot)
        if (event.status === 'finalized') await this.#onFinalized(event.slot, event.bank)
        if (event.status === 'dead') await this.#onDead(event.slot, event.bank)
        return
      case 'filled':
        return this.#endFill(event)
      case 'retry-fill':
        return this.#continueAfterFill()
      case 'store-ended':
        throw new StoreGone('the database process has ended')
      case 'tick':
        return this.#writer.flushIfDue()
    }
  }

  #sawSlot(slot: number): void {
    this.#streamSlot = Math.max(this.#streamSlot, slot)
    this.#streamSeenMs = this.#deps.clock.monotonicMs()
  }

  async #addBlock({ raw, bank, isFinal }: Extract<Event, { readonly kind: 'block' }>): Promise<void> {
    const { store, log, metrics } = this.#deps
    if (bank !== undefined && this.#banks.hasLost(raw.slot, bank)) return
    const id = ++this.#lastId
    const decoded = await store.ask({ kind: 'decode', id, raw })
    if (!decoded.ok) {
      metrics.faults.inc()
      log.warn({ slot: raw.slot, source: raw.source, node: raw.node, reason: decoded.fault }, 'block cannot be decoded')
      // The same block from getBlock, or from another node, may be complete; the frontier waits for it either way.
      this.#fetches.confirmed.refuse(raw)
      this.#filled = undefined
      this.#waitsFor = { from: raw.slot, to: raw.slot, message: decoded.fault }
      return
    }
    this.#sawSlot(raw.slot)
    this.#unwritten.set(id, raw)
    const { slot, blockhash } = decoded.link
    if (bank !== undefined) this.#banks.received(slot, blockhash, bank)
    if (isFinal === true) this.#banks.fetchedFinal(slot, blockhash)
    this.#compareFinal(slot)
    const block: PendingBlock = { ...decoded.link, id, raw, transactions: decoded.transactions, isFinal }
    if ((this.#banks.finalBlockhash(slot) ?? blockhash) !== blockhash) return this.#release([block])
    this.#frontier.offer(block)
    await this.#advance()
  }

  /** Takes every step that the frontier allows; the rest waits for the next event. */
  async #advance(): Promise<void> {
    let step = this.#frontier.step()
    for (; step.kind === 'append' || step.kind === 'rewind'; step = this.#frontier.step()) await this.#apply(step)
    await this.#release(this.#frontier.takeReleased())
    if (step.kind === 'fill') this.#startFill(step.range)
    this.#deps.metrics.held.set(this.#frontier.heldCount)
  }

  async #apply(step: Extract<Step<PendingBlock>, { readonly kind: 'append' | 'rewind' }>): Promise<void> {
    this.#filled = undefined
    if (step.kind === 'rewind') return this.#writer.replaceFrom(step.fromSlot, step.blocks)
    this.#waitsFor = undefined
    this.#compareFinal(step.block.slot)
    await this.#writer.append(step.block)
  }

  async #onFinalized(slot: number, bank: BankOfNode | undefined): Promise<void> {
    this.#finalizedTip = Math.max(this.#finalizedTip, slot)
    if (bank === undefined) {
      // Without bank ids a slot has one block.
      this.#finalizedSlot = Math.max(this.#finalizedSlot, slot)
      return
    }
    this.#banks.finalized(slot, bank)
    this.#compareFinal(slot)
    await this.#advance()
  }

  async #onDead(slot: number, bank: BankOfNode | undefined): Promise<void> {
    if (bank !== undefined) this.#banks.died(slot, bank)
    const blockhash = bank && this.#banks.blockhashOf(slot, bank)
    // A bank whose block was not received; the slot may live on in another one.
    if (bank !== undefined && (blockhash === undefined || blockhash === this.#banks.finalBlockhash(slot))) return
    const step = this.#frontier.removeDead(slot, blockhash)
    await this.#release(this.#frontier.takeReleased())
    if (step.kind === 'rewind') await this.#writer.deleteFrom(step.fromSlot)
  }

  /** Compares what the node finalized in this slot with the chain here, by blockhash. */
  #compareFinal(slot: number): void {
    const final = this.#banks.finalBlockhash(slot)
    const ours = this.#frontier.blockhashAt(slot)
    if (final !== undefined && ours === final) {
      this.#finalizedSlot = Math.max(this.#finalizedSlot, slot)
      this.#frontier.markFinal(slot)
    } else if (final !== undefined && ours !== undefined) this.#frontier.reject(slot, ours)
    for (const blockhash of this.#banks.lostBlockhashes(slot)) this.#frontier.reject(slot, blockhash)
  }

  #forgetRaw(blocks: readonly PendingBlock[]): void {
    for (const { id } of blocks) this.#unwritten.delete(id)
  }

  async #release(blocks: readonly PendingBlock[]): Promise<void> {
    if (blocks.length === 0) return
    this.#forgetRaw(blocks)
    await this.#deps.store.ask({ kind: 'forget', ids: blocks.map(({ id }) => id) })
  }

  #startFill(range: SlotRange): void {
    if (this.#isFilling) return
    this.#isFilling = true
    if (this.#filled?.from === range.from && this.#filled.to === range.to) {
      // The nodes have other blocks there than the one that is needed; they change with time, not with more calls.
      this.#filled = undefined
      this.#frontier.releaseUnlinked(range.to)
      return this.#fillLater('the nodes do not have the block that links the chain')
    }
    this.#filled = range
    this.#waitsFor = { ...range, message: 'being fetched' }
    this.#deps.metrics.gaps.inc()
    // Where a slot has several banks the finalized block is the right one; the newest slots have none yet.
    const isFinal = this.#banks.areNamed && range.to <= this.#finalizedTip
    const fetch = this.#fetches[isFinal ? 'finalized' : 'confirmed']
    const events = this.#events
    const options = { ...this.#options.fill, endIsFinal: this.#isFinalBlock(this.#frontier.childAfter(range)) }
    void fillRange(range, fetch, options, (raw) => events.push({ kind: 'block', raw, isFinal })).then(
      (result) => events.push({ kind: 'filled', range, result }),
      (error: unknown) => events.push({ kind: 'filled', range, result: { kind: 'later', reason: String(error) } }),
    )
  }

  #isFinalBlock(block: PendingBlock | undefined): boolean {
    if (block === undefined || block.isFinal === true) return block !== undefined
    return this.#banks.areNamed
      ? this.#banks.finalBlockhash(block.slot) === block.blockhash
      : block.slot <= this.#finalizedTip
  }

  /** No node has the blocks of this gap any more: the tables continue after it, and coverage reports it. */
  async #passGap(range: SlotRange): Promise<void> {
    const { log, metrics } = this.#deps
    // A batch is one range without a gap.
    await this.#writer.flush()
    this.#frontier.passGap(range)
    metrics.missingSlots.inc(range.to - range.from + 1)
    const fix = `sluice indexer backfill ${range.from} ${range.to}`
    log.error({ ...range, fix }, 'no node has the blocks of these slots any more; coverage reports them as missing')
  }

  #fillLater(reason: string): void {
    const { clock, log } = this.#deps
    if (this.#waitsFor !== undefined) this.#waitsFor = { ...this.#waitsFor, message: reason }
    log.warn({ ...this.#waitsFor }, 'gap not filled yet')
    clock.setTimer(this.#fillBackoff.nextMs(), () => this.#events.push({ kind: 'retry-fill' }))
  }

  async #endFill({ range, result }: Extract<Event, { readonly kind: 'filled' }>): Promise<void> {
    if (result.kind === 'later') {
      this.#filled = undefined
      return this.#fillLater(result.reason)
    }
    if (result.kind === 'unavailable') {
      this.#filled = undefined
      // Below the head there is no gap to pass, and a block that came meanwhile has changed what is missing.
      if (this.#frontier.childAfter(range) === undefined)
        return this.#fillLater(`no node has block ${range.to} any more`)
      await this.#passGap(range)
    }
    await this.#continueAfterFill()
  }

  async #continueAfterFill(): Promise<void> {
    this.#isFilling = false
    await this.#advance()
    if (!this.#isFilling) this.#fillBackoff.reset()
  }
}
