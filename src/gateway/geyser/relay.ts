import type { GrpcCall, MessageLimits } from '../../platform/grpc/call.ts'
import { FRAME_PREFIX_BYTES } from '../../platform/grpc/frame-reader.ts'
import { frameMessage } from '../../platform/grpc/framing.ts'
import { GrpcCode, type GrpcStatus } from '../../platform/grpc/status.ts'
import type { GrpcEnd, GrpcStream } from '../../platform/grpc/stream.ts'
import type { StreamMeter } from '../metrics.ts'
import type { SeenBanks } from './seen-banks.ts'
import { UpdateFrames } from './update-frames.ts'

/** Why a node was given up. */
export type NodeLoss = 'lost' | 'silent'

/** One call of a customer, joined to one call at a node. */
export type Relay = {
  readonly isOver: boolean
  /** Monotonic time of the last bytes from the node; undefined while the customer does not read. */
  readonly lastDataMs: number | undefined
  readonly bytesOut: number
  /** How often the call has moved to another node. */
  readonly moves: number
  /** Ends both sides. */
  end(status: GrpcStatus): void
  /** Reads no more messages of the customer. */
  stopMessages(): void
  /** Gives the node up; the call continues at another one or ends. */
  loseNode(loss: NodeLoss): void
}

export type RelayDeps = {
  readonly call: GrpcCall
  readonly upstream: GrpcStream
  /** Sent with the response headers. */
  readonly metadata: Readonly<Record<string, string>>
  readonly monotonicMs: () => number
  readonly meter: Pick<StreamMeter, 'messagesOut' | 'bytesOut'>
  /** Called with the bytes of messages as they are written, without their prefixes. A message may be written in several parts. */
  readonly onSent: (payloadBytes: number) => void
  readonly messageLimits: MessageLimits
  /** Whether this message of the customer is forwarded. */
  readonly accepts: (message: Uint8Array) => boolean
  /** The node ended the call with a status. */
  readonly onUpstreamEnd: (end: GrpcEnd) => void
  /** Set where the call may continue at another node. */
  readonly resume?: RelayResume | undefined
  /** Called exactly once, with the call at the node where that is still open, and the status unless the customer just disconnected. */
  readonly onEnd: (atNode: GrpcStream | undefined, status?: GrpcStatus) => void
}

export type RelayResume = {
  readonly banks: SeenBanks
  onData(): void
  onLive(): void
  /** Another node, and its first request; undefined where there is none. `ended` is for the customer, before the first bytes of the node. */
  next(lastSlot: number | undefined): Promise<NextCall | undefined>
}

type NextCall = {
  readonly stream: GrpcStream
  readonly request: Uint8Array
  readonly fromSlot: number
  readonly ended: { readonly banks: number; readonly frames: Uint8Array }
}

/** Trailing metadata of a call that has moved: the slots from which updates were sent again, one for each move, the newest last. */
const MOVED_TRAILER = 'x-sluice-resumed-from-slots'
const MOVED_SLOTS_MAX = 16

/** Relays the node's bytes unchanged, one write for each read. Each side is read only as fast as the other accepts data. */
export function startRelay(deps: RelayDeps): Relay {
  const { call, metadata, monotonicMs, resume, meter } = deps
  let frames = new UpdateFrames(resume?.banks)
  let upstream = deps.upstream
  /** Of the previous nodes. */
  let lastSlot: number | undefined
  let encoding: string | undefined
  let isOver = false
  let areMessagesStopped = false
  let isUpstreamPaused = false
  let isAtNode = true
  let moves = 0
  let movedFromSlots: number[] = []
  let hasHalfClosed = false
  let lastDataMs = monotonicMs()
  let bytesOut = 0

  function relayData(bytes: Buffer, release: () => void): void {
    const before = frames.messages
    const { held, fresh } = frames.push(bytes)
    // Held bytes were copied.
    if (fresh === undefined) release()
    const pieces = [held, fresh].filter((piece) => piece !== undefined)
    if (pieces.length === 0) return
    const written = pieces.reduce((sum, { length }) => sum + length, 0)
    const messages = frames.messages - before
    bytesOut += written
    meter.bytesOut.inc(written)
    meter.messagesOut.inc(messages)
    countSent(written, messages)
    if (call.writePieces(pieces, fresh === undefined ? NOTHING_TO_RELEASE : release) || isUpstreamPaused) return
    isUpstreamPaused = true
    upstream.pause()
  }

  function countSent(bytes: number, messages: number): void {
    // Nothing is written to a call that has ended.
    if (!call.isOver) deps.onSent(bytes - messages * FRAME_PREFIX_BYTES)
  }

  function finish(status?: GrpcStatus): void {
    if (isOver) return
    isOver = true
    deps.onEnd(isAtNode ? upstream : undefined, status)
  }

  function end(status: GrpcStatus): void {
    if (isOver) return
    const moved = moves === 0 ? {} : { [MOVED_TRAILER]: movedFromSlots.join(',') }
    // Before headers were sent, the status carries their metadata.
    const trailers = { ...(encoding === undefined ? metadata : {}), ...status.metadata, ...moved }
    call.end({ ...status, metadata: trailers })
    finish(status)
  }

  function seenSlot(): number | undefined {
    return frames.lastSlot ?? lastSlot
  }

  function attach(stream: GrpcStream): void {
    upstream = stream
    isAtNode = true
    // The bytes of an incomplete message are dropped with its node.
    frames = new UpdateFrames(resume?.banks)
    lastDataMs = monotonicMs()
    const isCurrent = () => upstream === stream && !isOver
    stream.onHeaders((headers) => {
      if (!isCurrent()) return
      const passed = passedHeaders(headers)
      // The encoding was sent to the client and cannot change.
      if (encoding !== undefined && encoding !== passed['grpc-encoding']) return loseNode('lost')
      if (encoding === undefined) call.sendHeaders({ ...passed, ...metadata })
      encoding = passed['grpc-encoding']
    })
    stream.onData((bytes, release) => {
      if (!isCurrent()) return release()
      lastDataMs = monotonicMs()
      resume?.onData()
      relayData(bytes, release)
    })
    stream.onEnd((ending) => {
      if (upstream !== stream) return
      isAtNode = false
      if (isOver) return
      const isLost = !ending.isFromServer || (resume !== undefined && ending.status.code === GrpcCode.unavailable)
      // A refusal of a resumed request is not for the client, which did not send it.
      if (isLost || (moves > 0 && frames.lastSlot === undefined)) onLoss('lost', !isLost)
      else deps.onUpstreamEnd(ending)
    })
    stream.onWritable(() => {
      if (!areMessagesStopped && isCurrent()) call.resumeMessages()
    })
  }

  function loseNode(loss: NodeLoss): void {
    if (isOver || !isAtNode) return
    const lost = upstream
    isAtNode = false
    upstream = NO_STREAM
    lost.cancel()
    onLoss(loss, false)
  }

  function onLoss(loss: NodeLoss, isFinal: boolean): void {
    if (resume === undefined || isFinal || frames.isWithinMessage) return end(lostStatus(seenSlot(), loss))
    if (frames.lastSlot !== undefined) resume.onLive()
    lastSlot = seenSlot()
    upstream = NO_STREAM
    call.pauseMessages()
    void continueAtNext(resume, loss)
  }

  async function continueAtNext({ next }: RelayResume, loss: NodeLoss): Promise<void> {
    const found = await next(lastSlot)
    if (found === undefined) return end(lostStatus(lastSlot, loss))
    if (isOver) return found.stream.cancel()
    moves += 1
    movedFromSlots = [...movedFromSlots, found.fromSlot].slice(-MOVED_SLOTS_MAX)
    attach(found.stream)
    sendEnded(found.ended)
    if (isUpstreamPaused) found.stream.pause()
    found.stream.write(frameMessage(found.request))
    if (hasHalfClosed) found.stream.halfClose()
    if (!areMessagesStopped) call.resumeMessages()
  }

  function sendEnded({ banks, frames: ended }: NextCall['ended']): void {
    if (banks === 0) return
    bytesOut += ended.length
    meter.bytesOut.inc(ended.length)
    meter.messagesOut.inc(banks)
    countSent(ended.length, banks)
    if (!call.writeFramed(ended)) isUpstreamPaused = true
  }

  // Also where the gRPC server ends the call, for a message that is too large or a deadline.
  call.onClose((status) => finish(status))
  call.onWritable(() => {
    if (!isUpstreamPaused) return
    isUpstreamPaused = false
    lastDataMs = monotonicMs()
    upstream.resume()
  })
  attach(deps.upstream)
  call.onMessage((message) => {
    if (isOver || areMessagesStopped || !deps.accepts(message) || isOver) return
    if (!upstream.write(frameMessage(message))) call.pauseMessages()
  }, deps.messageLimits)
  call.onHalfClose(() => {
    hasHalfClosed = true
    upstream.halfClose()
  })

  return {
    get isOver() {
      return isOver
    },
    get lastDataMs() {
      return isUpstreamPaused || !isAtNode ? undefined : lastDataMs
    },
    get bytesOut() {
      return bytesOut
    },
    get moves() {
      return moves
    },
    end,
    stopMessages() {
      areMessagesStopped = true
      call.pauseMessages()
    },
    loseNode,
  }
}

const NOTHING_TO_RELEASE = (): void => {}

/** In place of a node's stream while there is none. */
const NO_STREAM: GrpcStream = {
  write: () => true,
  onWritable() {},
  halfClose() {},
  cancel() {},
  onHeaders() {},
  onData() {},
  pause() {},
  resume() {},
  onEnd() {},
}

/** Headers of HTTP or of the gateway are not metadata of the node. */
const OWN_HEADERS = /^(:|content-|date$|server$|via$|trailer$|alt-svc$|grpc-accept-encoding$|x-ratelimit-)/

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
