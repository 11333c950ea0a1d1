import type { Clock, Timer } from '../../../core/clock.ts'
import { FrameBatch } from '../../../platform/grpc/framing.ts'
import { GrpcCode, type GrpcStatus } from '../../../platform/grpc/status.ts'
import type { FramesListener, GrpcEnd, GrpcStream } from '../../../platform/grpc/stream.ts'
import { encodeSlotUpdate } from './encode.ts'
import type { IndexedFilters } from './filter-index.ts'
import type { SlotFilter } from './filters.ts'

export type DecodedStreamDeps = {
  /** Bytes that wait for a client that does not read; what comes beyond them is lost to it. */
  readonly pendingBytesMax: number
  readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>
  /** A request of the client, without its prefix. */
  readonly onRequest: (stream: DecodedStream, message: Uint8Array) => void
  readonly onEnd: (stream: DecodedStream) => void
  readonly onLost: (messages: number) => void
  /** The messages have no place for a report, so that a loss ends the stream. */
  readonly endsOnLoss: boolean
}

/** Before the message: compression flag and length. */
const PREFIX_BYTES = 5
/** A client that reads nothing for so long loses what waits for it when its stream ends. */
const END_STALL_MS = 10_000
const NOTHING_TO_RELEASE = (): void => {}

type Pending = { readonly frames: Uint8Array; readonly messages: number; readonly slot: number }

/**
 * One stream of decoded transactions or entries, in the form of a call at a node, which the gateway relays. Messages are collected and
 * delivered with `flush`, whole ones to `onFrames`. A client that does not read loses what exceeds `pendingBytesMax`; it gets a report as soon as it reads again, or the stream ends.
 */
export class DecodedStream implements GrpcStream {
  readonly #deps: DecodedStreamDeps
  readonly #batch = new FrameBatch('identity')
  /** Slot of the first message in the batch. */
  #batchSlot = 0
  #batchMessages = 0
  /** What waits for the client, with the slot of its first message. */
  #pending: Pending[] = []
  #pendingBytes = 0
  #onFrames: FramesListener | undefined
  #onEnd: ((end: GrpcEnd) => void) | undefined
  /** Set when the stream has ended: later messages are ignored. The end listener runs once all pending messages are read. */
  #end: GrpcEnd | undefined
  #endTimer: Timer | undefined
  #isPaused = false
  #lost: { messages: number; fromSlot: number; toSlot: number } | undefined
  /** Set by the owner of the filters. */
  filters: IndexedFilters<DecodedStream> | undefined
  slots: readonly SlotFilter[] = []
  /** An entries stream begins with its request. */
  isStarted = false

  constructor(deps: DecodedStreamDeps) {
    this.#deps = deps
  }

  get isOver(): boolean {
    return this.#end !== undefined
  }

  /** Adds a message about a slot: `head` part by part, then `body`. */
  add(slot: number, head: readonly Uint8Array[], body: Uint8Array): void {
    if (this.#end !== undefined) return
    if (!this.#hasRoom) return this.#lose(slot)
    this.#collect(slot, head, body)
    if (this.#batch.isFull) this.flush()
  }

  /** Adds and delivers a message about the stream itself. One for which there is no room is left out, and is no loss. */
  addControl(slot: number, body: Uint8Array): void {
    if (!this.#hasRoom) return
    this.add(slot, [], body)
    this.flush()
  }

  /** Whether something was added that is not delivered yet. */
  get hasBatch(): boolean {
    return !this.#batch.isEmpty && this.#end === undefined
  }

  /** Delivers what was added. */
  flush(): void {
    if (!this.hasBatch) return
    const frames = this.#batch.take()
    const messages = this.#batchMessages
    this.#batchMessages = 0
    if (this.#pending.length === 0 && !this.#isPaused && this.#onFrames !== undefined) {
      this.#onFrames(frames, messages)
      // The listener may have ended the stream.
      if (this.isOver) this.#endWhenRead()
      return
    }
    this.#pending.push({ frames, messages, slot: this.#batchSlot })
    this.#pendingBytes += frames.length
    this.#drain()
  }

  /** Ends the stream after what was added. */
  finish(status: GrpcStatus): void {
    if (this.isOver) return
    this.#reportLoss()
    this.flush()
    // The client may have cancelled, also with what it just got.
    if (this.isOver) return
    this.#end = { status, isFromServer: true }
    this.#deps.onEnd(this)
    this.#endWhenRead()
  }

  write(frames: Uint8Array): boolean {
    if (this.#end === undefined) this.#deps.onRequest(this, frames.subarray(PREFIX_BYTES))
    return true
  }

  onWritable(): void {
    // Requests are taken at once.
  }

  halfClose(): void {
    // The client still receives.
  }

  cancel(): void {
    this.#endTimer?.cancel()
    this.#pending = []
    this.#onEnd = undefined
    if (this.#end !== undefined) return
    this.#end = { status: { code: GrpcCode.cancelled, message: 'cancelled' }, isFromServer: false }
    this.#deps.onEnd(this)
  }

  onHeaders(listener: (headers: Record<string, string>) => void): void {
    listener({})
  }

  onData(listener: (bytes: Buffer, release: () => void) => void): void {
    this.onFrames((frames) =>
      listener(Buffer.from(frames.buffer, frames.byteOffset, frames.length), NOTHING_TO_RELEASE),
    )
  }

  onFrames(listener: FramesListener): void {
    this.#onFrames = listener
    this.#drain()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#drain()
    if (this.#isPaused || this.#lost === undefined) return
    this.#reportLoss()
    this.flush()
  }

  onEnd(listener: (end: GrpcEnd) => void): void {
    if (this.#end === undefined || this.#pending.length > 0) this.#onEnd = listener
    else listener(this.#end)
  }

  /** A client that reads always has room. After a loss none has, until the loss is reported. */
  get #hasRoom(): boolean {
    return !this.#isPaused || (this.#lost === undefined && this.#pendingBytes < this.#deps.pendingBytesMax)
  }

  #collect(slot: number, head: readonly Uint8Array[], body: Uint8Array): void {
    if (this.#batch.isEmpty) this.#batchSlot = slot
    this.#batchMessages += 1
    this.#batch.add(head, body)
  }

  #drain(): void {
    if (this.#onFrames === undefined || this.#isPaused || this.#pending.length === 0) return
    while (!this.#isPaused && this.#pending.length > 0) {
      const { frames, messages } = this.#pending.shift() as Pending
      this.#pendingBytes -= frames.length
      this.#onFrames(frames, messages)
    }
    if (this.#end !== undefined) this.#endWhenRead()
  }

  /** Calls the listener when nothing waits. A client that stops reading delays it by `END_STALL_MS`. */
  #endWhenRead(): void {
    this.#endTimer?.cancel()
    if (this.#pending.length === 0) return this.#notifyEnd()
    this.#endTimer = this.#deps.clock.setTimer(END_STALL_MS, () => this.#dropUnread())
    this.#endTimer.unref?.()
  }

  #dropUnread(): void {
    const slot = this.#pending[0]?.slot ?? 0
    this.#pending = []
    const message = `messages from slot ${slot} on lost: the client did not read; limit: decodedPendingBytes`
    this.#end = { status: { code: GrpcCode.dataLoss, message }, isFromServer: true }
    this.#notifyEnd()
  }

  #notifyEnd(): void {
    const listener = this.#onEnd
    this.#onEnd = undefined
    if (this.#end !== undefined) listener?.(this.#end)
  }

  #reportLoss(): void {
    if (this.#lost === undefined) return
    const { messages, fromSlot, toSlot } = this.#lost
    this.#lost = undefined
    const reason = `${messages} messages of slots ${fromSlot} to ${toSlot} lost: the client did not read; limit: decodedPendingBytes`
    this.#collect(
      toSlot,
      this.slots.map(({ name }) => name),
      encodeSlotUpdate({ kind: 'lost', slot: toSlot, parentSlot: undefined, reason }, this.#deps.clock.nowMs()),
    )
  }

  #lose(slot: number): void {
    this.#deps.onLost(1)
    if (this.#deps.endsOnLoss) {
      const message = `messages of slot ${slot} lost: the client did not read; limit: decodedPendingBytes`
      return this.finish({ code: GrpcCode.dataLoss, message })
    }
    this.#lost ??= { messages: 0, fromSlot: slot, toSlot: slot }
    this.#lost.messages += 1
    this.#lost.toSlot = slot
  }
}
