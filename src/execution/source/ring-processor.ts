import { EVENT, eventSet } from '../../evm/event/type.ts'
import { BlockFold } from '../../evm/fold/block.ts'
import { type EventBatch, PAYLOAD_LOST } from '../../evm/ring/event-batch.ts'
import type { FollowResult, RingFollower } from '../../evm/ring/follow.ts'
import { BlockCapture } from './block-capture.ts'
import { HEADS_MAX } from './evm-node/recorded-heads.ts'
import type { BlockContent, SourceFailure, SourceMessage, SourceStats } from './message.ts'
import type { RawEventSelection } from './raw-event-demand.ts'
import { RawEvents } from './raw-events.ts'

export type RingProcessorOptions = {
  /** For failure messages; the follower opens the file. */
  path: string
  /** Secret of the hash tables. */
  seed: number
  /** How often TopAccesses is published, if it changed. */
  topAccessesMs: number
  /** How often its counters are reset. */
  topAccessesResetMs: number
  /** A larger block is folded but not stored for JSON-RPC. */
  blockBytesMax: number
  /** Sluice itself records this ring from a node: report when events were recorded, not when they were read. */
  isOwnRing?: boolean
}

/** Called with a block as soon as it has ended, before the messages of its step. It may be called twice for a block. */
export type OnBlock = (block: BlockContent) => void

/** How often progress is reported when there are no other messages; otherwise it is added to them. */
const PROGRESS_MS = 100
/** Computing TopAccesses takes as long as the figures of a block, so it is delayed up to this long until no other message is due. */
const TOP_WAIT_MS = 200

/**
 * Blocks of our own ring that are not completed: more than its recorder can still finalize, because blocks of other branches stay active
 * until their number is final.
 */
const OWN_ACTIVE_MAX = HEADS_MAX + 1024

/** Events that produce messages or begin a block: raw events before them are sent first. */
const BOUNDARY = eventSet([
  EVENT.BLOCK_START,
  EVENT.BLOCK_REJECT,
  EVENT.BLOCK_END,
  EVENT.BLOCK_QC,
  EVENT.BLOCK_FINALIZED,
  EVENT.BLOCK_VERIFIED,
  EVENT.EVM_ERROR,
])

/**
 * Reads one ring across restarts of the node and turns its events into messages, one poll at a time. Messages follow the order of the
 * events; for one event the raw form comes before the results of the fold. A block is passed on before its figures are computed, so that
 * a client that gets the figures can also request the block.
 */
export class RingProcessor {
  readonly #follower: RingFollower
  readonly #options: RingProcessorOptions
  readonly #fold: BlockFold
  readonly #capture: BlockCapture
  readonly #raw = new RawEvents()
  #messages: SourceMessage[] = []
  #failure: SourceFailure | undefined
  #isInBlock = false
  #droppedBlocks = 0
  #hasProgress = false
  /** When the newest event was recorded. */
  #recordedMs = 0
  /** When the event was recorded that is folded now, of those that produce messages. */
  #eventMs = 0
  #progressAtMs = Number.NEGATIVE_INFINITY
  #topAtMs = Number.NEGATIVE_INFINITY
  #topResetAtMs: number | undefined
  #topSeen = 0

  constructor(follower: RingFollower, options: RingProcessorOptions, onBlock: OnBlock) {
    this.#follower = follower
    this.#options = options
    this.#capture = new BlockCapture(options)
    this.#fold = new BlockFold(
      { seed: options.seed, ...(options.isOwnRing === true ? { lifecycle: { activeMax: OWN_ACTIVE_MAX } } : {}) },
      {
        lifecycle: (change) => {
          const record = this.#fold.lifecycle.recordOf(change.block_hash)
          if (record !== undefined) this.#messages.push({ kind: 'lifecycle', change, record, timeMs: this.#eventMs })
        },
        tps: (tps, blockNumber, id) => {
          const block = this.#capture.take()
          if (block !== undefined) onBlock(block)
          this.#messages.push({ kind: 'tps', tps: tps ?? null, blockNumber, id, timeMs: this.#eventMs })
        },
        contention: (data, conflicts, accesses) =>
          void this.#messages.push({ kind: 'contention', data, conflicts, accesses }),
        dropped: ({ blockSeqno }) => {
          this.#capture.forget(blockSeqno)
          this.#droppedBlocks += 1
        },
        incomplete: () => {},
      },
    )
  }

  selectRawEvents(selection: RawEventSelection): void {
    this.#raw.select(selection)
  }

  /** Polls the ring once. `isIdle` when it had no events; there may be messages even so. */
  step(nowMs: number, readMs = 0): { messages: SourceMessage[]; isIdle: boolean } {
    const result = this.#follower.poll(nowMs)
    this.#handle(result)
    if (!this.#isInBlock) this.#applySelection()
    this.#publishTopAccesses(nowMs)
    const hasMessages = this.#messages.length > 0
    if (this.#hasProgress && (hasMessages || nowMs >= this.#progressAtMs)) {
      this.#hasProgress = false
      this.#progressAtMs = nowMs + PROGRESS_MS
      const { cursor: seqno, lagEvents, hasNewEvents } = this.#follower
      const position = { seqno, lagEvents, readMs, stats: this.#stats() }
      const usesRecordedTime = !hasNewEvents || this.#options.isOwnRing === true
      const age = usesRecordedTime ? { recordedMs: this.#recordedMs } : {}
      this.#messages.push({ kind: 'progress', position: { ...position, ...age } })
    }
    const messages = this.#messages
    this.#messages = []
    return { messages, isIdle: result.kind !== 'events' && result.kind !== 'gap' && result.kind !== 'opened' }
  }

  #handle(result: FollowResult): void {
    switch (result.kind) {
      case 'events':
        this.#reportFailure(undefined)
        this.#hasProgress = true
        this.#handleBatch(this.#follower.batch as EventBatch)
        return
      case 'gap': {
        this.#hasProgress = true
        this.#flushRaw()
        this.#capture.forget()
        this.#raw.forgetBlock()
        this.#isInBlock = false
        const blocksDropped = this.#fold.gap()
        this.#messages.push({ kind: 'gap', fromSeqno: result.from, toSeqno: result.to, blocksDropped })
        return
      }
      case 'opened':
        this.#reportFailure(undefined)
        if (result.mode !== undefined) this.#messages.push({ kind: 'opened', mode: result.mode })
        if (result.previousSeqno !== undefined) this.#restart(result.previousSeqno)
        return
      case 'missing':
        return this.#reportFailure({ code: 'missing', message: `there is no event ring at ${this.#options.path}` })
      case 'refused':
        return this.#reportFailure({ code: 'refused', message: `${this.#options.path}: ${result.refusal.message}` })
      case 'unreadable':
        return this.#reportFailure({ code: 'unreadable', message: result.message })
      default:
    }
  }

  #restart(previousSeqno: number): void {
    this.#flushRaw()
    this.#fold.restart()
    this.#capture.forget()
    this.#raw.forgetBlock()
    this.#isInBlock = false
    this.#topSeen = 0
    this.#messages.push({ kind: 'restart', previousSeqno })
  }

  #handleBatch(batch: EventBatch): void {
    this.#recordedMs = batch.timeMs(batch.count - 1)
    let folded = 0
    let lost: { fromSeqno: number; toSeqno: number } | undefined
    this.#droppedBlocks = 0
    for (let at = 0; at < batch.count; at++) {
      const type = batch.type(at)
      if (batch.payloadAt[at] === PAYLOAD_LOST)
        lost = { fromSeqno: lost?.fromSeqno ?? batch.seqno(at), toSeqno: batch.seqno(at) }
      if (type === EVENT.BLOCK_START) this.#beginBlock()
      this.#capture.add(batch, at)
      if (!this.#raw.isIdle && this.#raw.add(batch, at)) this.#flushRaw()
      if (BOUNDARY[type] !== 1) continue
      this.#flushRaw()
      this.#eventMs = batch.timeMs(at)
      this.#fold.fold(batch, folded, at + 1)
      folded = at + 1
      if (type === EVENT.BLOCK_END) this.#endBlock(batch, at)
      const dropped = this.#fold.lifecycle.takeDropped()
      if (dropped.length > 0) this.#messages.push({ kind: 'forgotten', ids: dropped })
    }
    this.#fold.fold(batch, folded)
    this.#flushRaw()
    // Payloads that were overwritten before they were copied are reported as a gap too.
    if (lost !== undefined) this.#messages.push({ kind: 'gap', ...lost, blocksDropped: this.#droppedBlocks })
  }

  #beginBlock(): void {
    this.#flushRaw()
    this.#applySelection()
    this.#isInBlock = true
  }

  /** The gas used by the block is known now, also without its figures. */
  #endBlock(batch: EventBatch, at: number): void {
    this.#isInBlock = false
    const record = this.#fold.lifecycle.recordAt(batch.blockSeqno(at))
    if (record !== undefined) this.#messages.push({ kind: 'lifecycle-record', record })
  }

  #applySelection(): void {
    const applied = this.#raw.applySelection()
    if (applied !== undefined) this.#messages.push({ kind: 'raw-events-active', ...applied })
  }

  #flushRaw(): void {
    const events = this.#raw.takeFrame()
    if (events !== undefined) this.#messages.push({ kind: 'events', events })
  }

  #reportFailure(failure: SourceFailure | undefined): void {
    if (failure?.message === this.#failure?.message) return
    this.#failure = failure
    this.#messages.push({ kind: 'failure', failure })
  }

  #publishTopAccesses(nowMs: number): void {
    const { topAccesses } = this.#fold
    const isIdleOrOverdue = this.#messages.length === 0 || nowMs >= this.#topAtMs + TOP_WAIT_MS
    if (topAccesses.seen !== this.#topSeen && nowMs >= this.#topAtMs && isIdleOrOverdue) {
      this.#topSeen = topAccesses.seen
      this.#topAtMs = nowMs + this.#options.topAccessesMs
      this.#messages.push({
        kind: 'top-accesses',
        data: topAccesses.publish(),
        accountsSeen: topAccesses.account.seen,
      })
    }
    this.#topResetAtMs ??= nowMs + this.#options.topAccessesResetMs
    if (nowMs < this.#topResetAtMs) return
    this.#topResetAtMs = nowMs + this.#options.topAccessesResetMs
    topAccesses.reset()
    this.#topSeen = 0
  }

  #stats(): SourceStats {
    const { gaps, eventsLost, payloadsLost } = this.#follower.stats
    const { events, recordErrors, unknownTypes, blocksDropped, blocksIncomplete } = this.#fold.stats
    const { unknownIds: unknownBlocks } = this.#fold.lifecycle.stats
    const lost = { gaps, eventsLost, payloadsLost, recordErrors, blocksDropped, blocksIncomplete }
    return { events, unknownTypes, unknownBlocks, ...lost }
  }
}
