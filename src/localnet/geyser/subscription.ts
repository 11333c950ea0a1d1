import type { Clock } from '../../core/clock.ts'
import type { GrpcCall } from '../../platform/grpc/call.ts'
import { FrameBatch } from '../../platform/grpc/framing.ts'
import { GrpcCode } from '../../platform/grpc/status.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { type SubscribeRequest, SubscribeRequestSchema, SubscribeUpdateSchema } from '../../solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../solana/geyser/protobuf.ts'
import type { Chain } from '../chain/model.ts'
import { AccountUpdate } from './account-update.ts'
import { deliver } from './deliver.ts'
import { compileFilter, EMPTY_FILTER, type StreamFilter } from './filter/filter.ts'
import type { FilterLimits } from './filter/limits.ts'
import { encodeCreatedAt } from './scratch.ts'
import type { SlotLog } from './slot-log.ts'
import type { Update } from './updates.ts'

export type SubscriptionOptions = {
  readonly limits: FilterLimits
  readonly pingMs: number
  readonly replaySlots: number
  readonly replay: boolean
}

export type SubscriptionDeps = {
  readonly chain: Chain
  readonly slotLog: SlotLog
  readonly firstReplaySlot: () => number | undefined
  readonly clock: Clock
  readonly log: Logger
}

type Response = { case: 'ping'; value: Record<string, never> } | { case: 'pong'; value: { id: number } }

/** Updates of which those before `next` are written. */
type UpdateList = { readonly updates: readonly Update[]; next: number }

/** Reads the slot log. Records before `replay.end` are a replay, in which slots below `replay.fromSlot` are skipped. */
type Reading = {
  readonly kind: 'reading'
  position: number
  /** The remaining updates of the record at `position`. */
  record: UpdateList | undefined
  readonly replay: { readonly fromSlot: number; readonly end: number }
}

type State =
  /** No updates are sent before the first filter. */
  | { readonly kind: 'unfiltered' }
  /** All accounts are sent first. */
  | { readonly kind: 'snapshot'; readonly accounts: UpdateList; readonly next: Reading }
  | Reading

const NO_REPLAY = { fromSlot: 0, end: 0 }

/** Responses waiting to be written; a stream whose client pings this often without reading is ended. */
const WAITING_RESPONSES_MAX = 1000

/**
 * One Subscribe stream. It has a position in the slot log and reads on whenever the client can receive more, so a slow
 * client takes no memory; when the log drops the record at its position, the stream is ended.
 */
export class GeyserSubscription {
  readonly #call: GrpcCall
  readonly #options: SubscriptionOptions
  readonly #deps: SubscriptionDeps
  readonly #batch: FrameBatch
  #filter: StreamFilter = EMPTY_FILTER
  #state: State = { kind: 'unfiltered' }
  #responses: Uint8Array[] = []
  /** The send buffer of the client is full. */
  #isWaiting = false
  #hasWarned = false

  constructor(call: GrpcCall, options: SubscriptionOptions, deps: SubscriptionDeps) {
    this.#call = call
    this.#options = options
    this.#deps = deps
    this.#batch = new FrameBatch(call.sendEncoding)
    const pings = deps.clock.setRepeating(options.pingMs, () => this.#respond({ case: 'ping', value: {} }))
    call.onClose(() => pings.cancel())
    call.onWritable(() => {
      this.#isWaiting = false
      this.pump()
    })
    call.onShutdown(() => call.end({ code: GrpcCode.unavailable, message: 'server is shutting down try again later' }))
    call.onMessage((bytes) => this.#receive(bytes))
    // Some load balancers open a stream only when data is sent.
    this.#respond({ case: 'ping', value: {} })
  }

  /** Writes until the client is up to date or its send buffer is full. */
  pump(): void {
    const call = this.#call
    while (!this.#isWaiting && !call.isOver) {
      this.#fillBatch()
      if (call.isOver || this.#batch.isEmpty) return
      this.#isWaiting = !call.writeFramed(this.#batch.take())
    }
    const reading = readingOf(this.#state)
    if (reading !== undefined && !call.isOver) this.#checkLag(reading)
  }

  #receive(bytes: Uint8Array): void {
    const request = decodeMessage(SubscribeRequestSchema, bytes)
    if (!request) {
      this.#call.end({ code: GrpcCode.internal, message: 'failed to decode Protobuf message: SubscribeRequest' })
      return
    }
    const compiled = compileFilter(request, this.#options.limits)
    if (!compiled.ok) {
      this.#call.end({ code: GrpcCode.invalidArgument, message: `failed to create filter: ${compiled.reason}` })
      return
    }
    if (request.ping) {
      this.#respond({ case: 'pong', value: { id: request.ping.id } })
      return
    }
    this.#replaceFilter(request, compiled.filter)
  }

  #replaceFilter(request: SubscribeRequest, filter: StreamFilter): void {
    const state = this.#state
    if (request.fromSlot !== undefined) {
      const replay = this.#startReplay(Number(request.fromSlot))
      if (replay === undefined) return
      // A snapshot that is being sent is completed first.
      this.#state = state.kind === 'snapshot' ? { ...state, next: replay } : replay
    } else if (state.kind === 'unfiltered') {
      this.#state = this.#begin(filter)
    } else if (filter.commitment !== this.#filter.commitment && state.kind === 'reading' && state.record) {
      // The rest of this record belongs to the previous filter; the new one starts with the next record.
      state.position++
      state.record = undefined
    }
    this.#filter = filter
    this.pump()
  }

  #begin(filter: StreamFilter): State {
    const { end } = this.#deps.slotLog
    const reading: Reading = { kind: 'reading', position: end, record: undefined, replay: NO_REPLAY }
    if (this.#call.metadata['x-request-snapshot'] === undefined) return reading
    return { kind: 'snapshot', accounts: this.#takeSnapshot(filter), next: reading }
  }

  /** Undefined, and the stream is ended, where the slot cannot be replayed. */
  #startReplay(fromSlot: number): Reading | undefined {
    const { slotLog, firstReplaySlot } = this.#deps
    if (!this.#options.replay) {
      this.#call.end({ code: GrpcCode.internal, message: 'from_slot is not supported' })
      return undefined
    }
    const first = firstReplaySlot()
    if (first === undefined || fromSlot < first) {
      const message = `broadcast from ${fromSlot} is not available, last available: ${first ?? 0}`
      this.#call.end({ code: GrpcCode.outOfRange, message })
      return undefined
    }
    const replay = { fromSlot, end: slotLog.end }
    return { kind: 'reading', position: slotLog.positionOf(fromSlot), record: undefined, replay }
  }

  #takeSnapshot({ commitment }: StreamFilter): UpdateList {
    const { chain, clock } = this.#deps
    const slot = chain.slot(commitment)
    const createdAt = encodeCreatedAt(clock.nowMs())
    const updates: Update[] = []
    for (const [address, account] of chain.allAccounts(commitment)) {
      updates.push(new AccountUpdate({ address, account, slot, writeVersion: 0n }, createdAt, { isStartup: true }))
    }
    return { updates, next: 0 }
  }

  #respond(updateOneof: Response): void {
    if (this.#responses.length >= WAITING_RESPONSES_MAX) {
      this.#call.end({ code: GrpcCode.resourceExhausted, message: 'too many pings that were not read' })
      return
    }
    const message = encodeMessage(SubscribeUpdateSchema, { updateOneof })
    this.#responses.push(Buffer.concat([message, encodeCreatedAt(this.#deps.clock.nowMs())]))
    this.pump()
  }

  #fillBatch(): void {
    for (const message of this.#responses) this.#batch.add([], message)
    this.#responses = []
    if (this.#state.kind === 'snapshot') {
      const { accounts, next } = this.#state
      if (this.#drain(accounts)) this.#state = next
    }
    if (this.#state.kind === 'reading') this.#readLog(this.#state)
  }

  #readLog(reading: Reading): void {
    const { slotLog } = this.#deps
    const { replay } = reading
    while (!this.#batch.isFull && reading.position < slotLog.end) {
      if (!this.#checkLag(reading)) return
      if (!reading.record) {
        const skips = reading.position < replay.end && slotLog.slotAt(reading.position) < replay.fromSlot
        const updates = skips ? [] : slotLog.updatesAt(reading.position, this.#filter.commitment)
        if (!updates) return this.#cut()
        reading.record = { updates, next: 0 }
      }
      if (!this.#drain(reading.record)) return
      reading.record = undefined
      reading.position++
    }
  }

  /** Writes updates until the batch is full; returns whether none is left. */
  #drain(list: UpdateList): boolean {
    while (!this.#batch.isFull && list.next < list.updates.length) {
      deliver(list.updates[list.next++] as Update, this.#filter, this.#batch)
    }
    return list.next === list.updates.length
  }

  /** Ends a stream that fell behind the log; warns once when it is half of the log behind. */
  #checkLag({ position, replay }: Reading): boolean {
    const { slotLog, log } = this.#deps
    if (position < slotLog.first) {
      this.#cut()
      return false
    }
    const isLive = position >= replay.end
    if (!this.#hasWarned && this.#isWaiting && isLive && slotLog.ageOf(position) > this.#options.replaySlots / 2) {
      this.#hasWarned = true
      const behindSlots = slotLog.ageOf(position)
      log.warn({ remote: this.#call.remoteAddress, behindSlots }, 'geyser stream falls behind')
    }
    return true
  }

  #cut(): void {
    this.#deps.log.warn({ remote: this.#call.remoteAddress }, 'geyser stream ended: it fell behind the replay log')
    this.#call.end({ code: GrpcCode.internal, message: 'lagged to receive geyser messages' })
  }
}

function readingOf(state: State): Reading | undefined {
  if (state.kind === 'unfiltered') return undefined
  return state.kind === 'snapshot' ? state.next : state
}
