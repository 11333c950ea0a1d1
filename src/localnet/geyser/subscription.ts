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

/** Responses waiting to be written; a stream whose client pings this often without reading is ended. */
const WAITING_RESPONSES_MAX = 1000

/**
 * One Subscribe stream. It has a position in the slot log and reads on whenever the client can receive more, so a slow
 * client takes no memory; when the log drops the record at its position, the stream is ended.
 */
export function startSubscription(
  call: GrpcCall,
  options: SubscriptionOptions,
  deps: SubscriptionDeps,
): { readonly pump: () => void } {
  const { slotLog, chain, clock, log } = deps
  const batch = new FrameBatch(call.sendEncoding)
  let filter: StreamFilter = EMPTY_FILTER
  /** Undefined until the first filter: no updates are sent before. */
  let position: number | undefined
  /** The remaining updates of the record at `position`. */
  let current: { readonly updates: readonly Update[]; next: number } | undefined
  /** Records before `end` are a replay, in which slots below `fromSlot` are skipped. */
  let replay = { fromSlot: 0, end: 0 }
  let snapshot: { readonly updates: readonly Update[]; next: number } | undefined
  let responses: Uint8Array[] = []
  let isWaiting = false
  let hasWarned = false

  const pings = clock.setRepeating(options.pingMs, () => respond({ case: 'ping', value: {} }))
  call.onClose(() => pings.cancel())
  call.onWritable(() => {
    isWaiting = false
    pump()
  })
  call.onShutdown(() => call.end({ code: GrpcCode.unavailable, message: 'server is shutting down try again later' }))
  call.onMessage(receive)
  // Some load balancers open a stream only when data is sent.
  respond({ case: 'ping', value: {} })

  function receive(bytes: Uint8Array): void {
    const request = decodeMessage(SubscribeRequestSchema, bytes)
    if (!request) {
      call.end({ code: GrpcCode.internal, message: 'failed to decode Protobuf message: SubscribeRequest' })
      return
    }
    const compiled = compileFilter(request, options.limits)
    if (!compiled.ok) {
      call.end({ code: GrpcCode.invalidArgument, message: `failed to create filter: ${compiled.reason}` })
      return
    }
    if (request.ping) {
      respond({ case: 'pong', value: { id: request.ping.id } })
      return
    }
    replaceFilter(request, compiled.filter)
  }

  function replaceFilter(request: SubscribeRequest, next: StreamFilter): void {
    if (request.fromSlot !== undefined) {
      if (!startReplay(Number(request.fromSlot))) return
    } else if (position === undefined) {
      position = slotLog.end
      if (call.metadata['x-request-snapshot'] !== undefined) snapshot = takeSnapshot(next)
    } else if (next.commitment !== filter.commitment && current) {
      // The rest of this record belongs to the previous filter; the new one starts with the next record.
      position++
      current = undefined
    }
    filter = next
    pump()
  }

  function startReplay(fromSlot: number): boolean {
    if (!options.replay) {
      call.end({ code: GrpcCode.internal, message: 'from_slot is not supported' })
      return false
    }
    const first = deps.firstReplaySlot()
    if (first === undefined || fromSlot < first) {
      const message = `broadcast from ${fromSlot} is not available, last available: ${first ?? 0}`
      call.end({ code: GrpcCode.outOfRange, message })
      return false
    }
    position = slotLog.positionOf(fromSlot)
    current = undefined
    replay = { fromSlot, end: slotLog.end }
    return true
  }

  function takeSnapshot({ commitment }: StreamFilter) {
    const slot = chain.slot(commitment)
    const createdAt = encodeCreatedAt(clock.nowMs())
    const updates: Update[] = []
    for (const [address, account] of chain.allAccounts(commitment)) {
      updates.push(new AccountUpdate({ address, account, slot, writeVersion: 0n }, createdAt, { isStartup: true }))
    }
    return { updates, next: 0 }
  }

  type Response = { case: 'ping'; value: Record<string, never> } | { case: 'pong'; value: { id: number } }

  function respond(updateOneof: Response): void {
    if (responses.length >= WAITING_RESPONSES_MAX) {
      call.end({ code: GrpcCode.resourceExhausted, message: 'too many pings that were not read' })
      return
    }
    responses.push(
      Buffer.concat([encodeMessage(SubscribeUpdateSchema, { updateOneof }), encodeCreatedAt(clock.nowMs())]),
    )
    pump()
  }

  /** Writes until the client is up to date or its send buffer is full. */
  function pump(): void {
    while (!isWaiting && !call.isOver) {
      fillBatch()
      if (call.isOver || batch.isEmpty) return
      isWaiting = !call.writeFramed(batch.take())
    }
    if (position !== undefined && !call.isOver) checkLag(position)
  }

  function fillBatch(): void {
    for (const message of responses) batch.add([], message)
    responses = []
    if (snapshot) {
      drain(snapshot)
      if (snapshot.next === snapshot.updates.length) snapshot = undefined
    }
    while (!batch.isFull && !snapshot && position !== undefined && position < slotLog.end) {
      if (!checkLag(position)) return
      if (!current) {
        const skips = position < replay.end && slotLog.slotAt(position) < replay.fromSlot
        const updates = skips ? [] : slotLog.updatesAt(position, filter.commitment)
        if (!updates) return cut()
        current = { updates, next: 0 }
      }
      drain(current)
      if (current.next < current.updates.length) return
      current = undefined
      position++
    }
  }

  function drain(part: { readonly updates: readonly Update[]; next: number }): void {
    while (!batch.isFull && part.next < part.updates.length) {
      deliver(part.updates[part.next++] as Update, filter, batch)
    }
  }

  /** Ends a stream that fell behind the log; warns once when it is half of the log behind. */
  function checkLag(at: number): boolean {
    if (at < slotLog.first) {
      cut()
      return false
    }
    if (!hasWarned && isWaiting && at >= replay.end && slotLog.ageOf(at) > options.replaySlots / 2) {
      hasWarned = true
      log.warn({ remote: call.remoteAddress, behindSlots: slotLog.ageOf(at) }, 'geyser stream falls behind')
    }
    return true
  }

  function cut(): void {
    log.warn({ remote: call.remoteAddress }, 'geyser stream ended: it fell behind the replay log')
    call.end({ code: GrpcCode.internal, message: 'lagged to receive geyser messages' })
  }

  return { pump }
}
