import type { GrpcCall, MessageLimits } from '../../platform/grpc/call.ts'
import { FRAME_PREFIX_BYTES } from '../../platform/grpc/frame-reader.ts'
import { frameMessage } from '../../platform/grpc/framing.ts'
import { GrpcCode, type GrpcStatus } from '../../platform/grpc/status.ts'
import type { GrpcEnd, GrpcStream } from '../../platform/grpc/stream.ts'
import { grpcRefusalOf } from '../../upstreams/grpc-link.ts'
import type { StreamMeter } from '../metrics.ts'
import type { NextNode, Resume } from './resume.ts'
import { UpdateFrames } from './update-frames.ts'

/** Why a node was given up. */
export type NodeLoss = 'lost' | 'silent'

export type RelayDeps = {
  readonly call: GrpcCall
  readonly nodeStream: GrpcStream
  /** Sent with the response headers, and again at the end where it has changed. */
  readonly metadata: () => Readonly<Record<string, string>>
  readonly monotonicMs: () => number
  readonly meter: Pick<StreamMeter, 'messagesOut' | 'bytesOut'>
  /** Called with the bytes of messages as they are written, without their prefixes. A message may be written in several parts. */
  readonly onSent: (payloadBytes: number) => void
  readonly messageLimits: MessageLimits
  /** Whether this message of the customer is forwarded. */
  readonly accepts: (message: Uint8Array) => boolean
  /** The node ended the call with a status. */
  readonly onUpstreamEnd: (end: GrpcEnd) => void
  /** The call could not be continued at another node because of a defect; it ends. */
  readonly onError: (error: unknown) => void
  /** Set where the call may continue at another node. */
  readonly resume?: Pick<Resume, 'banks' | 'onData' | 'onLive' | 'next'> | undefined
  /** Called exactly once, with the call at the node where that is still open, and the status unless the customer just disconnected. */
  readonly onEnd: (atNode: GrpcStream | undefined, status?: GrpcStatus) => void
}

/** Statuses of a node that another one need not have, besides its refusals of the gateway: it stops, or lacks the method. */
const FAULTS_OF_NODE: ReadonlySet<number> = new Set([GrpcCode.unavailable, GrpcCode.unimplemented])

/** Trailing metadata of a call that has moved: the slots from which updates were sent again, one for each move, the newest last. */
const MOVED_TRAILER = 'x-sluice-resumed-from-slots'
const MOVED_SLOTS_MAX = 16

/**
 * One call of a customer, joined to one call at a node. Relays the node's bytes unchanged, one write for each read. Each side is read only as fast as the
 * other accepts data.
 */
export class StreamRelay {
  readonly #deps: RelayDeps
  /** Undefined once the node has ended the call or is given up. */
  #node: GrpcStream | undefined
  #frames: UpdateFrames
  /** Last slot that a previous node sent. */
  #lastSlot: number | undefined
  /** As sent to the customer; undefined before the response headers. */
  #encoding: string | undefined
  #sentMetadata: Readonly<Record<string, string>> | undefined
  #lastDataMs: number
  #movedFromSlots: number[] = []
  #moves = 0
  #bytesOut = 0
  #isOver = false
  #isNodePaused = false
  #areMessagesStopped = false
  #hasHalfClosed = false

  constructor(deps: RelayDeps) {
    this.#deps = deps
    this.#frames = new UpdateFrames(deps.resume?.banks)
    this.#lastDataMs = deps.monotonicMs()
  }

  /** The call may end within it: its node may be lost by now. */
  start(): void {
    const { call, nodeStream, messageLimits } = this.#deps
    // Also where the gRPC server ends the call, for a message that is too large or a deadline.
    call.onClose((status) => this.#finish(status))
    call.onWritable(() => this.#onCustomerReads())
    this.#attach(nodeStream)
    call.onMessage((message) => this.#onMessage(message), messageLimits)
    call.onHalfClose(() => {
      this.#hasHalfClosed = true
      this.#node?.halfClose()
    })
  }

  /** Monotonic time of the last bytes from the node; undefined while the customer does not read. */
  get lastDataMs(): number | undefined {
    return this.#isNodePaused || this.#node === undefined ? undefined : this.#lastDataMs
  }

  /** Whether the client has a part of a message, whose rest only this node has. */
  get isWithinMessage(): boolean {
    return this.#frames.isWithinMessage
  }

  get bytesOut(): number {
    return this.#bytesOut
  }

  /** How often the call has moved to another node. */
  get moves(): number {
    return this.#moves
  }

  /** Ends both sides. */
  end(status: GrpcStatus): void {
    if (this.#isOver) return
    const moved = this.#moves === 0 ? {} : { [MOVED_TRAILER]: this.#movedFromSlots.join(',') }
    const metadata = this.#deps.metadata()
    const trailers = { ...(metadata === this.#sentMetadata ? {} : metadata), ...status.metadata, ...moved }
    this.#deps.call.end({ ...status, metadata: trailers })
    this.#finish(status)
  }

  /** Reads no more messages of the customer. */
  stopMessages(): void {
    this.#areMessagesStopped = true
    this.#deps.call.pauseMessages()
  }

  /** Gives the node up; the call continues at another one or ends. */
  loseNode(loss: NodeLoss): void {
    const lost = this.#node
    if (this.#isOver || lost === undefined) return
    this.#node = undefined
    lost.cancel()
    this.#onLoss(loss)
  }

  #finish(status?: GrpcStatus): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#deps.onEnd(this.#node, status)
  }

  #attach(node: GrpcStream): void {
    const { monotonicMs, resume } = this.#deps
    this.#node = node
    this.#lastDataMs = monotonicMs()
    const isCurrent = () => this.#node === node && !this.#isOver
    node.onHeaders((headers) => {
      if (isCurrent()) this.#onHeaders(headers)
    })
    if (node.onFrames !== undefined && resume === undefined)
      node.onFrames((frames, messages) => {
        if (!isCurrent()) return
        this.#lastDataMs = monotonicMs()
        this.#relayFrames(frames, messages)
      })
    else
      node.onData((bytes, release) => {
        if (!isCurrent()) return release()
        this.#lastDataMs = monotonicMs()
        this.#relayData(bytes, release)
      })
    node.onEnd((end) => {
      if (this.#node !== node) return
      this.#node = undefined
      if (!this.#isOver) this.#onNodeEnd(end)
    })
    node.onWritable(() => {
      if (!this.#areMessagesStopped && isCurrent()) this.#deps.call.resumeMessages()
    })
  }

  #onHeaders(headers: GrpcCall['metadata']): void {
    const passed = passedHeaders(headers)
    // The encoding was sent to the client and cannot change.
    if (this.#encoding !== undefined && this.#encoding !== passed['grpc-encoding']) return this.loseNode('lost')
    if (this.#encoding === undefined) {
      this.#sentMetadata = this.#deps.metadata()
      this.#deps.call.sendHeaders({ ...passed, ...this.#sentMetadata })
    }
    this.#encoding = passed['grpc-encoding']
  }

  #relayData(bytes: Buffer, release: () => void): void {
    const before = this.#frames.messages
    const { held, fresh } = this.#frames.push(bytes)
    const messages = this.#frames.messages - before
    this.#deps.resume?.onData({ slot: this.#frames.pieceSlot, messages, hasUnread: this.#frames.hasUnread })
    // Held bytes were copied.
    if (fresh === undefined) release()
    const pieces = [held, fresh].filter((piece) => piece !== undefined)
    if (pieces.length === 0) return
    const written = pieces.reduce((sum, { length }) => sum + length, 0)
    this.#count(written, messages)
    const isWritable = this.#deps.call.writePieces(pieces, fresh === undefined ? NOTHING_TO_RELEASE : release)
    if (!isWritable) this.#pauseNode()
  }

  /** Messages made in this process: their boundaries are known, and there is no other node to continue at. */
  #relayFrames(frames: Uint8Array, messages: number): void {
    this.#count(frames.length, messages)
    if (!this.#deps.call.writeFramed(frames)) this.#pauseNode()
  }

  #pauseNode(): void {
    if (this.#isNodePaused) return
    this.#isNodePaused = true
    this.#node?.pause()
  }

  #count(bytes: number, messages: number): void {
    const { call, meter, onSent } = this.#deps
    this.#bytesOut += bytes
    meter.bytesOut.inc(bytes)
    meter.messagesOut.inc(messages)
    // Nothing is written to a call that has ended.
    if (!call.isOver) onSent(bytes - messages * FRAME_PREFIX_BYTES)
  }

  #onCustomerReads(): void {
    if (!this.#isNodePaused) return
    this.#isNodePaused = false
    this.#lastDataMs = this.#deps.monotonicMs()
    this.#node?.resume()
  }

  #onMessage(message: Uint8Array): void {
    if (this.#isOver || this.#areMessagesStopped || !this.#deps.accepts(message) || this.#isOver) return
    if (this.#node?.write(frameMessage(message)) === false) this.#deps.call.pauseMessages()
  }

  #onNodeEnd(end: GrpcEnd): void {
    const isOfNode = FAULTS_OF_NODE.has(end.status.code) || grpcRefusalOf(end) !== undefined
    const mayMove = this.#deps.resume !== undefined && isOfNode
    // The node has sent a part of a message and then OK: the rest is lost.
    const isCut = end.status.code === GrpcCode.ok && this.#frames.isWithinAny
    if (!end.isFromServer || mayMove || isCut) this.#onLoss('lost', end)
    // A refusal of a resumed request is not for the client, which did not send it.
    else if (this.#moves > 0 && this.#frames.lastSlot === undefined) this.end(lostStatus(this.#seenSlot))
    else this.#deps.onUpstreamEnd(end)
  }

  #onLoss(loss: NodeLoss, end?: GrpcEnd): void {
    const { call, resume } = this.#deps
    if (resume === undefined || this.#frames.isWithinMessage) return this.end(lostStatus(this.#seenSlot, loss))
    if (this.#frames.lastSlot !== undefined) resume.onLive()
    this.#lastSlot = this.#seenSlot
    call.pauseMessages()
    this.#continueAtNext(resume, loss, end).catch((error: unknown) => {
      this.#deps.onError(error)
      this.end(lostStatus(this.#lastSlot, loss))
    })
  }

  async #continueAtNext({ next }: Pick<Resume, 'next'>, loss: NodeLoss, end?: GrpcEnd): Promise<void> {
    const found = await next()
    if (found === undefined) return this.#endLost(loss, end)
    const { stream, request, fromSlot, ended } = found
    if (this.#isOver) return stream.cancel()
    this.#moves += 1
    this.#movedFromSlots = [...this.#movedFromSlots, fromSlot].slice(-MOVED_SLOTS_MAX)
    // The bytes of an incomplete message are dropped with its node.
    this.#frames = new UpdateFrames(this.#deps.resume?.banks)
    this.#attach(stream)
    this.#sendEnded(ended)
    if (this.#isNodePaused) stream.pause()
    stream.write(frameMessage(request))
    if (this.#hasHalfClosed) stream.halfClose()
    if (!this.#areMessagesStopped) this.#deps.call.resumeMessages()
  }

  /** With no other node. A call of which the client has nothing yet ends as one that may not move. */
  #endLost(loss: NodeLoss, end: GrpcEnd | undefined): void {
    if (this.#encoding !== undefined || end?.isFromServer !== true) this.end(lostStatus(this.#lastSlot, loss))
    else if (!this.#isOver) this.#deps.onUpstreamEnd(end)
  }

  #sendEnded({ banks, frames }: NextNode['ended']): void {
    if (banks === 0) return
    this.#count(frames.length, banks)
    if (!this.#deps.call.writeFramed(frames)) this.#isNodePaused = true
  }

  get #seenSlot(): number | undefined {
    return this.#frames.lastSlot ?? this.#lastSlot
  }
}

const NOTHING_TO_RELEASE = (): void => {}

/** Headers of HTTP or of the gateway are not metadata of the node. The status of a call is in its trailers. */
const OWN_HEADERS =
  /^(:|content-|date$|server$|via$|trailer$|alt-svc$|http2-settings$|grpc-(accept-encoding|status|message)$|x-ratelimit-)/

function passedHeaders(headers: GrpcCall['metadata']): Record<string, string> {
  // Messages are relayed as encoded by the node.
  const passed: Record<string, string> = { 'grpc-encoding': 'identity' }
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string' && !OWN_HEADERS.test(name)) passed[name] = value
  }
  return passed
}

const LOSS_REASONS: Readonly<Record<NodeLoss, string>> = { lost: 'is lost', silent: 'has gone silent' }

/** The status of a call whose node is lost; the client can continue from the slot. */
export function lostStatus(lastSlot: number | undefined, loss: NodeLoss = 'lost'): GrpcStatus {
  const seen = lastSlot === undefined ? '' : `; last slot seen: ${lastSlot}`
  return { code: GrpcCode.unavailable, message: `the node behind this call ${LOSS_REASONS[loss]}${seen}` }
}
