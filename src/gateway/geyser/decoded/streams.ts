import type { Clock } from '../../../core/clock.ts'
import type { Random } from '../../../core/random.ts'
import { GrpcCode } from '../../../platform/grpc/status.ts'
import type { GrpcStream } from '../../../platform/grpc/stream.ts'
import { secureRandom } from '../../../platform/process/random.ts'
import { createTimeSlices, type TimeSlices } from '../../../platform/process/time-slices.ts'
import type { DecodedMethod } from '../methods.ts'
import { SHUTTING_DOWN } from '../refusal.ts'
import { encodeEntries, encodePing, encodePong, encodeSlotUpdate, encodeTransactionUpdate } from './encode.ts'
import { FilterIndex } from './filter-index.ts'
import { FilterUpdates } from './filter-updates.ts'
import { type DeshredRequest, readDeshredRequest } from './request.ts'
import type { DecodedDataSet, DecodedSlot, DecodedSource } from './source.ts'
import { DecodedStream } from './stream.ts'

export type DecodedStreamsOptions = {
  /** Filters of one stream. */
  readonly filtersMax: number
  /** Bytes that wait for a client that does not read. */
  readonly pendingBytesMax: number
}

export type DecodedStreamsDeps = {
  readonly source: DecodedSource
  readonly clock: Clock
  readonly meter: DecodedMeter
  readonly slices?: TimeSlices
  readonly random?: Random
}

export type DecodedMeter = {
  /** From the arrival of the shred that completed a data set until its messages were written. */
  delivered(seconds: number): void
  /** Messages that a client or this thread did not read in time. */
  lost(by: 'client' | 'thread', messages: number): void
}

export type DecodedStreams = Disposable & {
  /** What is wrong with a request that the plan allows; undefined where nothing is. */
  check(method: DecodedMethod, message: Uint8Array): DecodedRefusal | undefined
  /** Opens a stream as if it were a call at a node. */
  open(method: DecodedMethod): GrpcStream
}

export type DecodedRefusal = { readonly rule: string; readonly message: string }

/** As nodes do. */
const PING_MS = 10_000
/**
 * Streams that are flushed in the first turn of the event loop; twice as many in each further one. node:http2 writes their connections when the turn ends:
 * those of the first streams are written before the last ones are flushed. A turn costs too, so that there are few of them.
 */
const FIRST_TURN_FLUSHES = 8

/** The streams of decoded transactions and entries of one gateway thread. The source is read while there are any. */
export function createDecodedStreams(options: DecodedStreamsOptions, deps: DecodedStreamsDeps): DecodedStreams {
  const { source, clock, meter, slices = createTimeSlices(), random = secureRandom } = deps
  const index = new FilterIndex<DecodedStream>(random)
  const updates = new FilterUpdates(index, slices)
  const transactionStreams = new Set<DecodedStream>()
  const entryStreams = new Set<DecodedStream>()
  /** Arrival times in the current batch. */
  const arrivals: number[] = []
  let lastSlot = 0
  let reading: Disposable | undefined

  const pings = clock.setRepeating(PING_MS, () => {
    const body = encodePing(clock.nowMs())
    for (const stream of transactionStreams) stream.addControl(lastSlot, body)
  })
  pings.unref?.()

  function onDataSet(set: DecodedDataSet): void {
    lastSlot = set.slot
    let isDelivered = false
    if (set.entries !== undefined && entryStreams.size > 0) {
      const body = encodeEntries(set.slot, set.entries)
      for (const stream of entryStreams) if (stream.isStarted) stream.add(set.slot, [], body)
      isDelivered = true
    }
    if (index.size > 0) {
      const nowMs = clock.nowMs()
      for (const transaction of set.transactions) {
        let body: Uint8Array | undefined
        index.match(transaction, (stream, names) => {
          body ??= encodeTransactionUpdate(set, transaction, nowMs)
          stream.add(set.slot, names, body)
          isDelivered = true
        })
      }
    }
    if (isDelivered) arrivals.push(set.arrivalNanos)
  }

  /** A loss is sent to every stream, also where no filter asks for slots: no stream hides a gap. */
  function onSlot(slot: DecodedSlot): void {
    const body = encodeSlotUpdate(slot, clock.nowMs())
    for (const stream of transactionStreams) {
      const names = stream.slots
        .filter(({ hasInterslotUpdates }) => hasInterslotUpdates || slot.kind !== 'first-shred')
        .map(({ name }) => name)
      if (names.length > 0 || slot.kind === 'lost') stream.add(slot.slot, names, body)
    }
    if (slot.kind === 'lost' && slot.isDecoded === true) endEntries(slot.reason)
  }

  /** A message of entries has no place for a report. */
  function endEntries(reason: string): void {
    for (const stream of [...entryStreams]) stream.finish({ code: GrpcCode.dataLoss, message: reason })
  }

  function onLost(dataSets: number): void {
    meter.lost('thread', dataSets)
    const reason = `${dataSets} data sets after slot ${lastSlot} lost: this server fell behind`
    onSlot({ kind: 'lost', slot: lastSlot, parentSlot: undefined, reason })
    endEntries(reason)
  }

  async function onBatchEnd(): Promise<void> {
    let flushesMax = FIRST_TURN_FLUSHES
    let flushes = 0
    for (const streams of [transactionStreams, entryStreams]) {
      for (const stream of streams) {
        if (!stream.hasBatch) continue
        stream.flush()
        if (++flushes < flushesMax) continue
        await slices.yield()
        flushesMax *= 2
        flushes = 0
      }
    }
    const nowNanos = clock.monotonicMs() * 1e6
    for (const arrivalNanos of arrivals) meter.delivered(Math.max(0, nowNanos - arrivalNanos) / 1e9)
    arrivals.length = 0
  }

  /** The addresses are not checked here: `request-check.ts` has done it, and `updates` does it again when it decodes them. */
  function refusalOf(request: DeshredRequest | undefined): DecodedRefusal | undefined {
    if (request === undefined) return { rule: 'readable', message: 'not a SubscribeDeshredRequest' }
    const count = request.transactions.size + request.slots.size
    if (count <= options.filtersMax) return undefined
    const message = `request refused: it has ${count} filters; decodedFiltersPerStream allows ${options.filtersMax}`
    return { rule: 'decodedFiltersPerStream', message }
  }

  function onRequest(stream: DecodedStream, message: Uint8Array): void {
    if (entryStreams.has(stream)) {
      stream.isStarted = true
      return
    }
    const request = readDeshredRequest(message)
    const refusal = refusalOf(request)
    if (refusal !== undefined) return stream.finish({ code: GrpcCode.invalidArgument, message: refusal.message })
    if (request === undefined) return
    const { ping, transactions, slots } = request
    if (ping !== undefined) stream.addControl(lastSlot, encodePong(ping, clock.nowMs()))
    // A ping alone keeps the filters, and the client may cancel with the pong.
    const isPingAlone = ping !== undefined && transactions.size + slots.size === 0
    if (!isPingAlone && !stream.isOver) updates.apply(stream, request)
  }

  function onEnd(stream: DecodedStream): void {
    updates.end(stream)
    transactionStreams.delete(stream)
    entryStreams.delete(stream)
    if (transactionStreams.size + entryStreams.size > 0) return
    reading?.[Symbol.dispose]()
    reading = undefined
  }

  return {
    check(method, message) {
      if (method === 'SubscribeEntries') return undefined
      return refusalOf(readDeshredRequest(message))
    },
    open(method) {
      const stream = new DecodedStream({
        pendingBytesMax: options.pendingBytesMax,
        clock,
        onRequest,
        onEnd,
        onLost: (messages) => meter.lost('client', messages),
        endsOnLoss: method === 'SubscribeEntries',
      })
      if (method === 'SubscribeEntries') entryStreams.add(stream)
      else {
        transactionStreams.add(stream)
        // Some load balancers open a stream only when data is sent.
        stream.addControl(lastSlot, encodePing(clock.nowMs()))
      }
      reading ??= source.read({ onDataSet, onSlot, onLost, onBatchEnd })
      return stream
    },
    [Symbol.dispose]() {
      pings.cancel()
      reading?.[Symbol.dispose]()
      for (const stream of [...transactionStreams, ...entryStreams]) stream.finish(SHUTTING_DOWN)
    },
  }
}
