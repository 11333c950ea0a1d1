import type { GrpcCall } from '../host/grpc-call.ts'
import { frameMessage } from '../host/grpc-framing.ts'
import { GrpcCode, type GrpcStatus } from '../host/grpc-status.ts'
import type { GrpcEnd, GrpcStream } from '../host/grpc-stream.ts'
import { UpdateFrames } from './update-frames.ts'

/** One call of a customer joined to one call of a node. */
export type Relay = {
  readonly isOver: boolean
  /** Time of the last bytes from the node, on the monotonic scale; undefined while the customer does not read. */
  readonly heardMs: number | undefined
  /** Ends both sides. */
  end(status: GrpcStatus): void
  /** Takes no more messages of the customer. */
  hush(): void
}

export type RelayDeps = {
  readonly call: GrpcCall
  readonly upstream: GrpcStream
  /** Told with the first answer. */
  readonly metadata: Readonly<Record<string, string>>
  readonly monotonicMs: () => number
  /** Whether this message of the customer is forwarded. */
  readonly accepts: (message: Uint8Array) => boolean
  /** The node ended the call, by a status of its own or by being lost. */
  readonly onUpstreamEnd: (end: GrpcEnd) => void
  /** The call is over, however it ended. Called exactly once, with whether the node still has it. */
  readonly onOver: (isAtNode: boolean) => void
}

/** Bytes of the node go through as they are, as many as arrived at once in one write. Each side is read only as fast as the other takes it. */
export function startRelay(deps: RelayDeps): Relay {
  const { call, upstream, metadata, monotonicMs } = deps
  const frames = new UpdateFrames()
  let isOver = false
  let isHushed = false
  let isHeldUp = false
  let isFlushing = false
  let hasHeaders = false
  let hasEnded = false
  let heardMs = monotonicMs()

  function flush(): void {
    isFlushing = false
    if (isOver) return
    const bytes = frames.take()
    if (bytes === undefined || call.writeFramed(bytes) || isHeldUp) return
    isHeldUp = true
    upstream.pause()
  }

  function over(): void {
    if (isOver) return
    isOver = true
    deps.onOver(!hasEnded)
  }

  function end(status: GrpcStatus): void {
    if (isOver) return
    // Without headers the status is the whole answer, and carries what they would have told.
    call.end(hasHeaders ? status : { ...status, metadata: { ...metadata, ...status.metadata } })
    over()
  }

  call.onClose(over)
  call.onWritable(() => {
    if (!isHeldUp) return
    isHeldUp = false
    heardMs = monotonicMs()
    upstream.resume()
  })
  upstream.onHeaders((headers) => {
    if (isOver) return
    hasHeaders = true
    call.sendHeaders({ ...passedHeaders(headers), ...metadata })
  })
  upstream.onData((bytes) => {
    if (isOver) return
    heardMs = monotonicMs()
    frames.push(bytes)
    if (isFlushing) return
    // What came with one read of the socket is handed over piece by piece; it is written together.
    isFlushing = true
    queueMicrotask(flush)
  })
  upstream.onEnd((ending) => {
    hasEnded = true
    if (isOver) return
    flush()
    if (ending.isFromServer) deps.onUpstreamEnd(ending)
    else deps.onUpstreamEnd({ isFromServer: false, status: lostStatus(frames.lastSlot) })
  })
  upstream.onWritable(() => {
    if (!isHushed) call.resumeMessages()
  })
  call.onMessage((message) => {
    if (isOver || isHushed || !deps.accepts(message) || isOver) return
    if (!upstream.write(frameMessage(message))) call.pauseMessages()
  })
  call.onHalfClose(() => upstream.halfClose())

  return {
    get isOver() {
      return isOver
    },
    get heardMs() {
      return isHeldUp ? undefined : heardMs
    },
    end,
    hush() {
      isHushed = true
      call.pauseMessages()
    },
  }
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

export function lostStatus(lastSlot: number | undefined): GrpcStatus {
  const seen = lastSlot === undefined ? '' : `; last slot seen: ${lastSlot}`
  return { code: GrpcCode.unavailable, message: `the node behind this call is lost${seen}` }
}
