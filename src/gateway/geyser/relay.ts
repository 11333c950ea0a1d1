import type { GrpcCall, MessageLimits } from '../../platform/grpc/call.ts'
import { frameMessage } from '../../platform/grpc/framing.ts'
import { GrpcCode, type GrpcStatus } from '../../platform/grpc/status.ts'
import type { GrpcEnd, GrpcStream } from '../../platform/grpc/stream.ts'
import type { StreamMeter } from '../metrics.ts'
import { UpdateFrames } from './update-frames.ts'

/** One call of a customer joined to one call of a node. */
export type Relay = {
  readonly isOver: boolean
  /** Time of the last bytes from the node, on the monotonic scale; undefined while the customer does not read. */
  readonly heardMs: number | undefined
  readonly bytesOut: number
  /** Ends both sides. */
  end(status: GrpcStatus): void
  /** Takes no more messages of the customer. */
  hush(): void
  /** Gives the node up; the call goes on at another or ends. */
  lose(how: 'is lost' | 'has gone silent'): void
}

export type RelayDeps = {
  readonly call: GrpcCall
  readonly upstream: GrpcStream
  /** Told with the first answer. */
  readonly metadata: Readonly<Record<string, string>>
  readonly monotonicMs: () => number
  readonly meter: Pick<StreamMeter, 'messagesOut' | 'bytesOut'>
  readonly messageLimits: MessageLimits
  /** Whether this message of the customer is forwarded. */
  readonly accepts: (message: Uint8Array) => boolean
  /** The node ended the call by a status of its own. */
  readonly onUpstreamEnd: (end: GrpcEnd) => void
  /** Where the call may outlive its node. */
  readonly resume?: RelayResume | undefined
  /** The call is over. Called exactly once, with the call to the node where that still stands and the status, unless the customer just went. */
  readonly onOver: (atNode: GrpcStream | undefined, status?: GrpcStatus) => void
}

export type RelayResume = {
  heard(): void
  settled(): void
  /** Another node, and the request to begin with; undefined when there is none to be had. */
  next(lastSlot: number | undefined): Promise<{ stream: GrpcStream; request: Uint8Array } | undefined>
}

/** Bytes of the node go through as they are, as many as arrived at once in one write. Each side is read only as fast as the other takes it. */
export function startRelay(deps: RelayDeps): Relay {
  const { call, metadata, monotonicMs, resume, meter } = deps
  let frames = new UpdateFrames()
  let upstream = deps.upstream
  /** Of the nodes before this one. */
  let lastSlot: number | undefined
  let encoding: string | undefined
  let isOver = false
  let isHushed = false
  let isHeldUp = false
  let isAtNode = true
  let isResumed = false
  let hasHalfClosed = false
  let heardMs = monotonicMs()
  let bytesOut = 0

  function pass(bytes: Buffer, giveBack: () => void): void {
    const before = frames.messages
    const { held, fresh } = frames.push(bytes)
    // What is held back was copied.
    if (fresh === undefined) giveBack()
    const pieces = [held, fresh].filter((piece) => piece !== undefined)
    if (pieces.length === 0) return
    const passed = pieces.reduce((sum, { length }) => sum + length, 0)
    bytesOut += passed
    meter.bytesOut.inc(passed)
    meter.messagesOut.inc(frames.messages - before)
    if (call.writePieces(pieces, fresh === undefined ? NOTHING_LEFT : giveBack) || isHeldUp) return
    isHeldUp = true
    upstream.pause()
  }

  function over(status?: GrpcStatus): void {
    if (isOver) return
    isOver = true
    deps.onOver(isAtNode ? upstream : undefined, status)
  }

  function end(status: GrpcStatus): void {
    if (isOver) return
    // Without headers the status is the whole answer, and carries what they would have told.
    call.end(encoding === undefined ? { ...status, metadata: { ...metadata, ...status.metadata } } : status)
    over(status)
  }

  function seenSlot(): number | undefined {
    return frames.lastSlot ?? lastSlot
  }

  function attach(stream: GrpcStream): void {
    upstream = stream
    isAtNode = true
    // Bytes of a message that did not come whole are dropped with the node that began it.
    frames = new UpdateFrames()
    heardMs = monotonicMs()
    const isCurrent = () => upstream === stream && !isOver
    stream.onHeaders((headers) => {
      if (!isCurrent()) return
      const passed = passedHeaders(headers)
      // The client was told how messages are encoded, and that cannot be taken back.
      if (encoding !== undefined && encoding !== passed['grpc-encoding']) return lose('is lost')
      if (encoding === undefined) call.sendHeaders({ ...passed, ...metadata })
      encoding = passed['grpc-encoding']
    })
    stream.onData((bytes, giveBack) => {
      if (!isCurrent()) return giveBack()
      heardMs = monotonicMs()
      resume?.heard()
      pass(bytes, giveBack)
    })
    stream.onEnd((ending) => {
      if (upstream !== stream) return
      isAtNode = false
      if (isOver) return
      const isLost = !ending.isFromServer || (resume !== undefined && ending.status.code === GrpcCode.unavailable)
      // A refusal of what this side asked for is no word to the client.
      if (isLost || (isResumed && frames.lastSlot === undefined)) lost('is lost', !isLost)
      else deps.onUpstreamEnd(ending)
    })
    stream.onWritable(() => {
      if (!isHushed && isCurrent()) call.resumeMessages()
    })
  }

  function lose(how: 'is lost' | 'has gone silent'): void {
    if (isOver || !isAtNode) return
    const given = upstream
    isAtNode = false
    upstream = NONE
    given.cancel()
    lost(how, false)
  }

  function lost(how: 'is lost' | 'has gone silent', isFinal: boolean): void {
    if (resume === undefined || isFinal || frames.isWithinMessage) return end(lostStatus(seenSlot(), how))
    if (frames.lastSlot !== undefined) resume.settled()
    lastSlot = seenSlot()
    upstream = NONE
    call.pauseMessages()
    void goOn(resume, how)
  }

  async function goOn({ next }: RelayResume, how: 'is lost' | 'has gone silent'): Promise<void> {
    const found = await next(lastSlot)
    if (found === undefined) return end(lostStatus(lastSlot, how))
    if (isOver) return found.stream.cancel()
    isResumed = true
    attach(found.stream)
    if (isHeldUp) found.stream.pause()
    found.stream.write(frameMessage(found.request))
    if (hasHalfClosed) found.stream.halfClose()
    if (!isHushed) call.resumeMessages()
  }

  // A message too large, or a deadline: ended by the server below, which says why.
  call.onClose((status) => over(status))
  call.onWritable(() => {
    if (!isHeldUp) return
    isHeldUp = false
    heardMs = monotonicMs()
    upstream.resume()
  })
  attach(deps.upstream)
  call.onMessage((message) => {
    if (isOver || isHushed || !deps.accepts(message) || isOver) return
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
    get heardMs() {
      return isHeldUp || !isAtNode ? undefined : heardMs
    },
    get bytesOut() {
      return bytesOut
    },
    end,
    hush() {
      isHushed = true
      call.pauseMessages()
    },
    lose,
  }
}

const NOTHING_LEFT = (): void => {}

/** Stands where there is no node at the moment. */
const NONE: GrpcStream = {
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

/** Headers that belong to HTTP or to this side of the call are not metadata of the node. */
const OWN_HEADERS = /^(:|content-|date$|server$|via$|trailer$|alt-svc$|grpc-accept-encoding$|x-ratelimit-)/

function passedHeaders(headers: GrpcCall['metadata']): Record<string, string> {
  // The messages are the node's, so is their encoding.
  const passed: Record<string, string> = { 'grpc-encoding': 'identity' }
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string' && !OWN_HEADERS.test(name)) passed[name] = value
  }
  return passed
}

/** Ends a call whose node is lost; the slot is where the client can go on. */
export function lostStatus(lastSlot: number | undefined, how: 'is lost' | 'has gone silent' = 'is lost'): GrpcStatus {
  const seen = lastSlot === undefined ? '' : `; last slot seen: ${lastSlot}`
  return { code: GrpcCode.unavailable, message: `the node behind this call ${how}${seen}` }
}
