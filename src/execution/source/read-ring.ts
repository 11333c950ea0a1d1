import { EVENT, eventSet } from '../../evm/event/type.ts'
import { BlockFold } from '../../evm/fold/block.ts'
import { type EventBatch, PAYLOAD_LOST } from '../../evm/ring/event-batch.ts'
import type { FollowResult, RingFollower } from '../../evm/ring/follow.ts'
import type { BlockContent, RawEventPart, SourceFailure, SourceMessage, SourceStats } from './message.ts'
import { RawEventMaker } from './raw-events.ts'
import { BlockRecorder } from './record-block.ts'
import type { Wanted } from './wanted-events.ts'

export type ReadRingOptions = {
  /** For messages; the follower opens the file. */
  path: string
  /** Secret of the hash tables. */
  seed: number
  /** How often TopAccesses is told, if it changed. */
  topAccessesMs: number
  /** How often its counters begin again. */
  topAccessesResetMs: number
  /** A larger block is folded but not kept for JSON-RPC. */
  blockBytesMax: number
}

/** Takes a block as soon as it has ended, ahead of the messages of its step. To be given one twice must do no harm. */
export type HandOver = (block: BlockContent) => void

type Polled = FollowResult | { kind: 'unreadable'; message: string }

/** `Events` frames are cut here, so that one of them is never much larger than a block's figures. */
const EVENTS_PER_FRAME = 256
const BYTES_PER_FRAME = 128 * 1024
/** Signs of life alone are told this often; with anything else they ride along. */
const PROGRESS_MS = 100
/** Making the list of the most accessed takes as long as the figures of a block. It waits so long for a moment in which nothing else leaves. */
const TOP_WAIT_MS = 200

/** Events after which something is told, or with which a block begins: raw events before them leave first. */
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
 * One ring, followed across restarts and folded into what is published, one poll at a time. Messages leave in the order of the events
 * they were made of; of one event the raw form comes first, then what was folded from it. Blocks do not wait for that: they are taken
 * in by the other thread while their figures are made here, so that whoever is told the figures can ask for the block.
 */
export class ReadRing {
  readonly #follower: RingFollower
  readonly #options: ReadRingOptions
  readonly #fold: BlockFold
  readonly #recorder: BlockRecorder
  readonly #raw = new RawEventMaker()
  #messages: SourceMessage[] = []
  #parts: RawEventPart[] = []
  #partBytes = 0
  #failure: SourceFailure | undefined
  #isInBlock = false
  #droppedBlocks = 0
  #hasNews = false
  #progressAtMs = Number.NEGATIVE_INFINITY
  #topAtMs = Number.NEGATIVE_INFINITY
  #topResetAtMs: number | undefined
  #topSeen = 0

  constructor(follower: RingFollower, options: ReadRingOptions, handOver: HandOver) {
    this.#follower = follower
    this.#options = options
    this.#recorder = new BlockRecorder(options)
    this.#fold = new BlockFold(
      { seed: options.seed },
      {
        lifecycle: (change) => {
          const record = this.#fold.lifecycle.recordOf(change.block_hash)
          if (record !== undefined) this.#messages.push({ kind: 'lifecycle', change, record })
        },
        tps: (tps, blockNumber) => {
          const block = this.#recorder.take()
          if (block !== undefined) handOver(block)
          this.#messages.push({ kind: 'tps', tps, blockNumber })
        },
        contention: (data, conflicts) => void this.#messages.push({ kind: 'contention', data, conflicts }),
        dropped: () => {
          this.#recorder.forget()
          this.#droppedBlocks += 1
        },
        incomplete: () => {},
      },
    )
  }

  shortage(wanted: Wanted): void {
    this.#raw.shortage(wanted)
  }

  /** Takes what the ring has next. `isIdle` when it had nothing; the messages may be none even so, or some. */
  step(nowMs: number, readMs = 0): { messages: SourceMessage[]; isIdle: boolean } {
    const result = this.#poll(nowMs)
    this.#take(result)
    if (!this.#isInBlock) this.#turnRaw()
    this.#reportTopAccesses(nowMs)
    const isNews = this.#messages.length > 0
    if (this.#hasNews && (isNews || nowMs >= this.#progressAtMs)) {
      this.#hasNews = false
      this.#progressAtMs = nowMs + PROGRESS_MS
      const { cursor: seqno, lagEvents } = this.#follower
      this.#messages.push({ kind: 'progress', position: { seqno, lagEvents, readMs, stats: this.#stats() } })
    }
    const messages = this.#messages
    this.#messages = []
    return { messages, isIdle: result.kind !== 'events' && result.kind !== 'gap' && result.kind !== 'opened' }
  }

  /** A file that may not be read is weather too: it is looked at again. */
  #poll(nowMs: number): Polled {
    try {
      return this.#follower.poll(nowMs)
    } catch (error) {
      return { kind: 'unreadable', message: error instanceof Error ? error.message : String(error) }
    }
  }

  #take(result: Polled): void {
    switch (result.kind) {
      case 'events':
        this.#hasNews = true
        this.#takeBatch(this.#follower.batch as EventBatch)
        return
      case 'gap': {
        this.#hasNews = true
        this.#flushParts()
        this.#recorder.forget()
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
    this.#flushParts()
    this.#fold.restart()
    this.#recorder.forget()
    this.#raw.forgetBlock()
    this.#isInBlock = false
    this.#topSeen = 0
    this.#messages.push({ kind: 'restart', previousSeqno })
  }

  #takeBatch(batch: EventBatch): void {
    let folded = 0
    let lost: { fromSeqno: number; toSeqno: number } | undefined
    this.#droppedBlocks = 0
    for (let at = 0; at < batch.count; at++) {
      const type = batch.type(at)
      if (batch.payloadAt[at] === PAYLOAD_LOST)
        lost = { fromSeqno: lost?.fromSeqno ?? batch.seqno(at), toSeqno: batch.seqno(at) }
      if (type === EVENT.BLOCK_START) this.#beginBlock()
      this.#recorder.add(batch, at)
      if (!this.#raw.isIdle) this.#addPart(this.#raw.make(batch, at))
      if (BOUNDARY[type] !== 1) continue
      this.#flushParts()
      this.#fold.fold(batch, folded, at + 1)
      folded = at + 1
      if (type === EVENT.BLOCK_END) this.#endBlock(batch, at)
      const dropped = this.#fold.lifecycle.takeDropped()
      if (dropped.length > 0) this.#messages.push({ kind: 'forgotten', ids: dropped })
    }
    this.#fold.fold(batch, folded)
    this.#flushParts()
    // Payloads that were overwritten before they could be copied are a loss like any other.
    if (lost !== undefined) this.#messages.push({ kind: 'gap', ...lost, blocksDropped: this.#droppedBlocks })
  }

  #beginBlock(): void {
    this.#flushParts()
    this.#turnRaw()
    this.#isInBlock = true
  }

  /** What the block used is known now, whether or not its figures are. */
  #endBlock(batch: EventBatch, at: number): void {
    this.#isInBlock = false
    const record = this.#fold.lifecycle.recordAt(batch.blockSeqno(at))
    if (record !== undefined) this.#messages.push({ kind: 'record', record })
  }

  #turnRaw(): void {
    const turned = this.#raw.turn()
    if (turned !== undefined) this.#messages.push({ kind: 'recording', ...turned })
  }

  #addPart(part: RawEventPart | undefined): void {
    if (part === undefined) return
    this.#parts.push(part)
    this.#partBytes += part.json.length
    if (this.#parts.length >= EVENTS_PER_FRAME || this.#partBytes >= BYTES_PER_FRAME) this.#flushParts()
  }

  #flushParts(): void {
    if (this.#parts.length === 0) return
    this.#messages.push({ kind: 'events', events: this.#parts })
    this.#parts = []
    this.#partBytes = 0
  }

  #reportFailure(failure: SourceFailure | undefined): void {
    if (failure?.message === this.#failure?.message) return
    this.#failure = failure
    this.#messages.push({ kind: 'failure', failure })
  }

  #reportTopAccesses(nowMs: number): void {
    const { topAccesses } = this.#fold
    const isMoment = this.#messages.length === 0 || nowMs >= this.#topAtMs + TOP_WAIT_MS
    if (topAccesses.seen !== this.#topSeen && nowMs >= this.#topAtMs && isMoment) {
      this.#topSeen = topAccesses.seen
      this.#topAtMs = nowMs + this.#options.topAccessesMs
      this.#messages.push({ kind: 'top-accesses', data: topAccesses.publish() })
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
    return { events, gaps, eventsLost, payloadsLost, recordErrors, unknownTypes, blocksDropped, blocksIncomplete }
  }
}
