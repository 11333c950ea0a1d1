import { createBackoff } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { Upstream } from '../../upstreams/service.ts'
import { StoreGone, type StoreProcess } from '../duckdb/process.ts'
import type { IndexerMetrics } from '../metrics.ts'
import { createBlockFetch } from './block-fetch.ts'
import { type BlockStream, followBlocks } from './block-stream.ts'
import { EventQueue } from './event-queue.ts'
import { type FillOptions, type FillResult, fillRange } from './fill.ts'
import { type BlockLink, Frontier } from './frontier.ts'
import type { RawBlock } from './raw-block.ts'
import type { SlotRange } from './slot-ranges.ts'

export type IngestOptions = {
  readonly includeAccounts: boolean
  /** A batch is written when it has so many blocks, or when its first has waited so long. */
  readonly batchBlocks: number
  readonly batchMs: number
  readonly heldMax: number
  readonly fill: FillOptions
}

export type IngestDeps = {
  readonly upstream: Pick<Upstream, 'ask' | 'grpc'>
  readonly store: StoreProcess
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: IndexerMetrics
}

export type IngestStatus = {
  readonly headSlot: number | undefined
  readonly tipSlot: number
  readonly held: number
  /** What the frontier waits for, and why it has not come. */
  readonly waitsFor: (SlotRange & { readonly message: string }) | undefined
  readonly blocks: number
  readonly transactions: number
}

/** A block that was looked into; its meaning lies in the store's process under `id`. */
type Pending = BlockLink & { readonly id: number; readonly raw: RawBlock; readonly transactions: number }

type Event =
  | { readonly kind: 'block'; readonly raw: RawBlock }
  | { readonly kind: 'slot'; readonly slot: number; readonly what: 'seen' | 'finalized' | 'dead' }
  | { readonly kind: 'filled'; readonly result: FillResult }
  | { readonly kind: 'tick' }
  | { readonly kind: 'stop' }

/** Events waiting before the stream is asked to pause, and when it may go on. */
const QUEUE_HIGH = 64
const QUEUE_LOW = 16
/** Times the same batch is tried before the database is taken for broken. */
const WRITE_TRIES = 4
const FILL_RETRY = { firstMs: 200, maxMs: 10_000 }

export type Ingest = {
  status(): IngestStatus
  /** Ends the run; what is not written comes again from the chain. */
  stop(): void
  /**
   * Resolves when it was stopped; rejects when the store is gone or does not take a batch. `unwritten` are the blocks that were here then: the
   * next run takes them, because accounts come with the stream alone.
   */
  readonly ended: Promise<{ readonly unwritten: readonly RawBlock[] }>
}

/** From stream to store: blocks in the order of the chain, gaps filled before anything passes them, batches written whole. */
export function startIngest(options: IngestOptions, carried: readonly RawBlock[], deps: IngestDeps): Ingest {
  const { store, clock, log, metrics } = deps
  const events = new EventQueue<Event>()
  const frontier = new Frontier<Pending>(store.progress.recent, { heldMax: options.heldMax })
  const fetch = createBlockFetch(deps.upstream, 'confirmed')
  const fillBackoff = createBackoff(FILL_RETRY, deps.random)
  const unwritten = new Map<number, RawBlock>()
  let batch: Pending[] = []
  let batchSinceMs = 0
  /** The slot after the last one that is written or in the batch. */
  let nextSlot = (store.progress.ranges.at(-1)?.to ?? -1) + 1
  let finalizedSlot = store.progress.finalizedSlot
  let tipSlot = nextSlot
  let isFilling = false
  let waitsFor: IngestStatus['waitsFor']
  let lastId = 0
  const totals = { blocks: 0, transactions: 0 }

  async function take(event: Event): Promise<void> {
    switch (event.kind) {
      case 'block':
        return takeBlock(event.raw)
      case 'slot':
        tipSlot = Math.max(tipSlot, event.slot)
        if (event.what === 'finalized') finalizedSlot = Math.max(finalizedSlot, event.slot)
        if (event.what === 'dead') await follow(frontier.dropped(event.slot))
        return
      case 'filled':
        return takeFilled(event.result)
      case 'tick':
        if (batch.length > 0 && clock.monotonicMs() - batchSinceMs >= options.batchMs) await flush()
        return
      case 'stop':
        return
    }
  }

  async function takeBlock(raw: RawBlock): Promise<void> {
    const id = ++lastId
    const response = await store.ask({ kind: 'decode', id, raw })
    if (!response.ok) {
      metrics.faults.inc()
      log.warn({ slot: raw.slot, source: raw.source, message: response.fault }, 'block cannot be read')
      // The same block asked for by getBlock may be whole; the frontier waits for it either way.
      waitsFor = { from: raw.slot, to: raw.slot, message: response.fault }
      return
    }
    tipSlot = Math.max(tipSlot, raw.slot)
    unwritten.set(id, raw)
    const letGo = frontier.offer({ ...response.link, id, raw, transactions: response.transactions })
    if (letGo !== undefined) {
      unwritten.delete(letGo.id)
      await store.ask({ kind: 'forget', ids: [letGo.id] })
    }
    await advance()
  }

  /** Takes every step there is; what cannot be done now waits for the next event. */
  async function advance(): Promise<void> {
    for (;;) {
      const step = frontier.step()
      if (step.kind === 'wait') break
      if (step.kind === 'fill') {
        fill(step.range)
        break
      }
      await follow(step)
    }
    metrics.held.set(frontier.heldCount)
    metrics.tipSlot.set(tipSlot)
  }

  async function follow(step: ReturnType<Frontier<Pending>['step']>): Promise<void> {
    if (step.kind === 'append') {
      if (batch.length === 0) batchSinceMs = clock.monotonicMs()
      batch.push(step.block)
      waitsFor = undefined
      if (batch.length >= options.batchBlocks) await flush()
    } else if (step.kind === 'rewind') {
      await flush()
      log.warn({ fromSlot: step.fromSlot }, 'the chain went another way: blocks from this slot on are written anew')
      metrics.rewinds.inc()
      await store.ask({ kind: 'rewind', fromSlot: step.fromSlot })
      nextSlot = Math.min(nextSlot, step.fromSlot)
    }
  }

  async function flush(): Promise<void> {
    const blocks = batch
    batch = []
    const [first, last] = [blocks[0], blocks.at(-1)]
    if (first === undefined || last === undefined) return
    // Slots before the first block ever are proven empty back to its parent.
    const from = store.progress.ranges.length === 0 && totals.blocks === 0 ? first.parentSlot + 1 : nextSlot
    const range = { from, to: last.slot }
    const startedMs = clock.monotonicMs()
    const ids = blocks.map(({ id }) => id)
    // A block's hash stands for all before it, so this names the content.
    const name = `${range.from}-${range.to}:${last.blockhash}`
    await tryWriting({ kind: 'write', ids, name, range, finalizedSlot, tipSlot })
    nextSlot = last.slot + 1
    for (const { id, transactions } of blocks) {
      unwritten.delete(id)
      totals.transactions += transactions
    }
    totals.blocks += blocks.length
    metrics.wrote(blocks.length, (clock.monotonicMs() - startedMs) / 1000, last.slot)
  }

  async function tryWriting(request: Parameters<typeof store.ask<'write'>>[0]): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await store.ask(request)
        return
      } catch (cause) {
        if (cause instanceof StoreGone || tries === WRITE_TRIES) throw cause
        metrics.retries.inc()
        log.warn({ err: cause, tries }, 'batch not written; trying again')
      }
    }
  }

  function fill(range: SlotRange): void {
    if (isFilling) return
    isFilling = true
    waitsFor = { ...range, message: 'asking for it' }
    metrics.gaps.inc()
    void fillRange(range, fetch, options.fill, (raw) => events.push({ kind: 'block', raw })).then(
      (result) => events.push({ kind: 'filled', result }),
      (error: unknown) => events.push({ kind: 'filled', result: { kind: 'later', message: String(error) } }),
    )
  }

  async function takeFilled(result: FillResult): Promise<void> {
    if (result.kind === 'later') {
      if (waitsFor !== undefined) waitsFor = { ...waitsFor, message: result.message }
      log.warn({ ...waitsFor }, 'gap not filled yet')
      clock.setTimer(fillBackoff.nextMs(), () => events.push({ kind: 'filled', result: { kind: 'done' } }))
      return
    }
    isFilling = false
    await advance()
    if (!isFilling) fillBackoff.reset()
  }

  async function run(): Promise<{ unwritten: readonly RawBlock[] }> {
    let isPaused = false
    const stream: BlockStream = followBlocks(options, deps, {
      onBlock(raw) {
        events.push({ kind: 'block', raw })
        if (events.size < QUEUE_HIGH || isPaused) return
        isPaused = true
        stream.pause()
      },
      onSlot: (slot, what) => events.push({ kind: 'slot', slot, what }),
      onLost: () => metrics.streamLosses.inc(),
    })
    const ticking = clock.setRepeating(Math.max(1, options.batchMs / 4), () => events.push({ kind: 'tick' }))
    for (const raw of carried) events.push({ kind: 'block', raw })
    try {
      for (;;) {
        const event = await events.take()
        if (event.kind === 'stop') break
        await take(event)
        if (isPaused && events.size <= QUEUE_LOW) {
          isPaused = false
          stream.resume()
        }
      }
      await flush()
      return { unwritten: [] }
    } catch (cause) {
      throw new IngestBroken([...unwritten.values()], { cause })
    } finally {
      ticking.cancel()
      stream[Symbol.dispose]()
    }
  }

  return {
    status: () => ({ headSlot: frontier.head?.slot, tipSlot, held: frontier.heldCount, waitsFor, ...totals }),
    stop: () => events.push({ kind: 'stop' }),
    ended: run(),
  }
}

/** The run cannot go on with this store; the blocks it still held go to the next. */
export class IngestBroken extends Error {
  override readonly name = 'IngestBroken'
  readonly unwritten: readonly RawBlock[]

  constructor(unwritten: readonly RawBlock[], options: ErrorOptions) {
    super('ingest cannot go on with this store', options)
    this.unwritten = unwritten
  }
}
