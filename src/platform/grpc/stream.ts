import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2'
import type { DataListener, Http2Tap } from './http2-tap.ts'
import { decodeGrpcMessage, GrpcCode, type GrpcStatus } from './status.ts'

/** How a call ended. `isFromServer` tells a status the server sent from one made here because it could not. */
export type GrpcEnd = {
  readonly status: GrpcStatus
  readonly isFromServer: boolean
}

/** One call to a server as bytes: messages carry their prefixes and may be cut anywhere. */
export type GrpcStream = {
  /** False means: better wait for `onWritable`. */
  write(frames: Uint8Array): boolean
  onWritable(listener: () => void): void
  /** Nothing more will be sent; the server may still answer. */
  halfClose(): void
  /** The call is not wanted any more. */
  cancel(): void
  /** Metadata of the answer, unless it is a status alone. */
  onHeaders(listener: (headers: IncomingHttpHeaders) => void): void
  /** Bytes flow from the moment a listener is set. */
  onData(listener: DataListener): void
  pause(): void
  resume(): void
  /** Called exactly once, after the last data. */
  onEnd(listener: (end: GrpcEnd) => void): void
}

/** Without a session the call ends as unavailable. */
export function openGrpcStream(
  on: { readonly session: ClientHttp2Session; readonly tap: Http2Tap } | undefined,
  headers: OutgoingHttpHeaders,
): GrpcStream {
  const session = on?.session
  const endListeners: ((end: GrpcEnd) => void)[] = []
  const headerListeners: ((headers: IncomingHttpHeaders) => void)[] = []
  let response: IncomingHttpHeaders | undefined
  let trailers: IncomingHttpHeaders | undefined
  let isCancelled = false
  let hasFinished = false
  let end: GrpcEnd | undefined

  function finish(): void {
    if (hasFinished) return
    hasFinished = true
    const ended = endOf({
      response,
      trailers,
      isCancelled,
      isLost: session?.destroyed ?? true,
      resetCode: stream?.rstCode,
    })
    const report = () => {
      tapped?.close()
      end = ended
      for (const listener of endListeners.splice(0)) listener(ended)
    }
    // The end comes after the last data, however long that waits to be read.
    if (tapped === undefined || isCancelled) report()
    else tapped.whenEmpty(report)
  }

  let stream: ClientHttp2Stream | undefined
  try {
    stream = session?.request(headers)
  } catch {
    // The session ended between the look at it and the call.
  }
  if (stream === undefined) queueMicrotask(finish)
  // A session that stands gives the stream its number at once.
  const tapped = stream?.id === undefined ? undefined : on?.tap.open(stream.id)
  // No data comes this way; but only a stream that is read comes to its end.
  if (tapped !== undefined) stream?.resume()

  stream?.on('response', (given: IncomingHttpHeaders) => {
    response = given
    if (given['grpc-status'] !== undefined) {
      trailers = given
      stream.resume()
      return
    }
    for (const listener of headerListeners.splice(0)) listener(given)
    tapped?.start()
  })
  stream?.on('trailers', (given: IncomingHttpHeaders) => {
    trailers = given
  })
  // The server has said all: with this side's end the stream is over.
  stream?.on('end', () => stream.end())
  // Resets and broken connections show in the status; 'close' follows.
  stream?.on('error', () => {})
  stream?.on('close', finish)

  return {
    write(frames) {
      if (stream === undefined || stream.destroyed || stream.writableEnded) return false
      return stream.write(frames)
    },
    onWritable: (listener) => void stream?.on('drain', listener),
    halfClose: () => void stream?.end(),
    cancel() {
      isCancelled = true
      tapped?.close()
      if (stream !== undefined && !stream.destroyed) stream.close(constants.NGHTTP2_CANCEL)
    },
    onHeaders(listener) {
      if (response !== undefined && response !== trailers) listener(response)
      else headerListeners.push(listener)
    },
    onData: (listener) => tapped?.onData(listener),
    pause: () => tapped?.pause(),
    resume: () => tapped?.resume(),
    onEnd(listener) {
      if (end === undefined) endListeners.push(listener)
      else listener(end)
    },
  }
}

type Ending = {
  readonly response: IncomingHttpHeaders | undefined
  readonly trailers: IncomingHttpHeaders | undefined
  readonly isCancelled: boolean
  readonly isLost: boolean
  readonly resetCode: number | undefined
}

function endOf({ response, trailers, isCancelled, isLost, resetCode }: Ending): GrpcEnd {
  const reported = trailers?.['grpc-status']
  if (trailers !== undefined && typeof reported === 'string' && /^\d{1,3}$/.test(reported)) {
    return { status: statusOf(Number(reported), trailers), isFromServer: true }
  }
  if (isCancelled) return made(GrpcCode.cancelled, 'cancelled')
  const httpStatus = Number(response?.[':status'] ?? 200)
  if (httpStatus !== 200) {
    return made(HTTP_CODES[httpStatus] ?? GrpcCode.unknown, `the node answered HTTP ${httpStatus}`)
  }
  if (!isLost && resetCode !== undefined && resetCode !== constants.NGHTTP2_NO_ERROR) {
    return made(RESET_CODES[resetCode] ?? GrpcCode.internal, 'the node reset the stream')
  }
  return made(GrpcCode.unavailable, 'the connection to the node is lost')
}

function made(code: number, message: string): GrpcEnd {
  return { status: { code, message }, isFromServer: false }
}

/** Trailers that belong to gRPC itself or to HTTP are not metadata. */
const OWN_TRAILERS = /^(:|grpc-|content-type$|date$|server$)/

function statusOf(code: number, trailers: IncomingHttpHeaders): GrpcStatus {
  const metadata: Record<string, string> = {}
  for (const [name, value] of Object.entries(trailers)) {
    if (typeof value === 'string' && (!OWN_TRAILERS.test(name) || name === 'grpc-status-details-bin'))
      metadata[name] = value
  }
  const message = trailers['grpc-message']
  return {
    code,
    ...(typeof message === 'string' ? { message: decodeGrpcMessage(message) } : {}),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
  }
}

/** github.com/grpc/grpc, doc/http-grpc-status-mapping.md */
const HTTP_CODES: Readonly<Record<number, number>> = {
  400: GrpcCode.internal,
  401: GrpcCode.unauthenticated,
  403: GrpcCode.permissionDenied,
  404: GrpcCode.unimplemented,
  429: GrpcCode.unavailable,
  502: GrpcCode.unavailable,
  503: GrpcCode.unavailable,
  504: GrpcCode.unavailable,
}

/** doc/PROTOCOL-HTTP2.md, "Errors"; what is not listed is INTERNAL. */
const RESET_CODES: Readonly<Record<number, number>> = {
  [constants.NGHTTP2_REFUSED_STREAM]: GrpcCode.unavailable,
  [constants.NGHTTP2_CANCEL]: GrpcCode.unavailable,
  [constants.NGHTTP2_ENHANCE_YOUR_CALM]: GrpcCode.resourceExhausted,
  [constants.NGHTTP2_INADEQUATE_SECURITY]: GrpcCode.permissionDenied,
}
