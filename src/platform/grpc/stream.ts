import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2'
import type { DataListener, Http2Tap } from './http2-tap.ts'
import { decodeGrpcMessage, GrpcCode, type GrpcStatus } from './status.ts'

/** How a call ended. `isFromServer` is false for a status that was made here because the server sent none. */
export type GrpcEnd = {
  readonly status: GrpcStatus
  readonly isFromServer: boolean
  /** The server responded with the status alone. */
  readonly isTrailersOnly?: boolean
}

/** Whole messages with their prefixes, and how many there are. Their memory is not used again. */
export type FramesListener = (frames: Uint8Array, messages: number) => void

/** One call to a server as bytes: messages with their prefixes, in chunks that may end anywhere. */
export type GrpcStream = {
  /** After false the caller should wait for `onWritable`. */
  write(frames: Uint8Array): boolean
  onWritable(listener: () => void): void
  /** Sends no more messages; the server may still respond. */
  halfClose(): void
  cancel(): void
  /** Metadata of the response; not called for a response that is only a status. */
  onHeaders(listener: (headers: IncomingHttpHeaders) => void): void
  /** Bytes flow from the moment a listener is set. */
  onData(listener: DataListener): void
  /** Instead of `onData`, where the messages are made in this process. */
  onFrames?(listener: FramesListener): void
  pause(): void
  resume(): void
  /** Called exactly once, after the last data. */
  onEnd(listener: (end: GrpcEnd) => void): void
}

/** Without a session the call ends as UNAVAILABLE. */
export function openGrpcStream(
  on: { readonly session: ClientHttp2Session; readonly tap: Http2Tap } | undefined,
  headers: OutgoingHttpHeaders,
): GrpcStream {
  const session = on?.session
  const endListeners: ((end: GrpcEnd) => void)[] = []
  const headerListeners: ((headers: IncomingHttpHeaders) => void)[] = []
  let response: IncomingHttpHeaders | undefined
  /** Those of a response of gRPC that may have messages. */
  let accepted: IncomingHttpHeaders | undefined
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
      isTrailersOnly: accepted === undefined,
      isCancelled,
      isLost: session?.destroyed ?? true,
      resetCode: stream?.rstCode,
    })
    const notify = (how: GrpcEnd) => {
      tapped?.close()
      end = how
      for (const listener of endListeners.splice(0)) listener(how)
    }
    // The end follows the last data, also when that still waits to be read. If the call is cancelled by then, the data was dropped, and the end is not
    // the server's. Data without response headers is never delivered.
    if (tapped === undefined || isCancelled || accepted === undefined) notify(ended)
    else tapped.whenEmpty(() => notify(isCancelled ? CANCELLED : ended))
  }

  let stream: ClientHttp2Stream | undefined
  try {
    stream = session?.request(headers)
  } catch {
    // The session ended in the meantime.
  }
  if (stream === undefined) queueMicrotask(finish)
  // On an open session the stream has its id at once.
  const tapped = stream?.id === undefined ? undefined : on?.tap.open(stream.id)
  // The tap takes the data, but a stream emits 'end' only when it is read.
  if (tapped !== undefined) stream?.resume()

  stream?.on('response', (received: IncomingHttpHeaders, flags: number) => {
    response = received
    if ((flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0) {
      trailers = received
      return
    }
    // From a proxy before the node: its body is a page, not messages, and need not end. The headers give the end of the call.
    if (foreignEnd(received) !== undefined) {
      if (received['grpc-status'] !== undefined) trailers = received
      tapped?.close()
      stream.close(constants.NGHTTP2_CANCEL)
      return
    }
    accepted = received
    for (const listener of headerListeners.splice(0)) listener(received)
    tapped?.start()
  })
  stream?.on('trailers', (received: IncomingHttpHeaders) => {
    trailers = received
  })
  // The server has ended its side: ending this one closes the stream.
  stream?.on('end', () => {
    // Some servers send a status as headers and end the stream without trailers.
    trailers ??= response
    stream.end()
  })
  // 'close' follows, and the status shows the reason.
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
      if (accepted !== undefined) listener(accepted)
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
  readonly isTrailersOnly: boolean
  readonly isCancelled: boolean
  readonly isLost: boolean
  readonly resetCode: number | undefined
}

function endOf({ response, trailers, isTrailersOnly, isCancelled, isLost, resetCode }: Ending): GrpcEnd {
  const code = trailers?.['grpc-status']
  if (trailers !== undefined && typeof code === 'string' && /^\d{1,3}$/.test(code)) {
    return { status: statusOf(Number(code), trailers), isFromServer: true, isTrailersOnly }
  }
  if (isCancelled) return CANCELLED
  const foreign = response && foreignEnd(response)
  if (foreign !== undefined) return foreign
  if (!isLost && resetCode !== undefined && resetCode !== constants.NGHTTP2_NO_ERROR) {
    return localEnd(RESET_CODES[resetCode] ?? GrpcCode.internal, 'the node reset the stream')
  }
  return localEnd(GrpcCode.unavailable, 'the connection to the node is lost')
}

const CONTENT_TYPE_SHOWN_MAX = 64

/** The end of a call whose response is not of gRPC. A response without a content type is taken for one that is, as most clients do. */
function foreignEnd(response: IncomingHttpHeaders): GrpcEnd | undefined {
  const httpStatus = Number(response[':status'])
  if (httpStatus !== 200) {
    return localEnd(HTTP_CODES[httpStatus] ?? GrpcCode.unknown, `the node responded with HTTP ${httpStatus}`)
  }
  const contentType = response['content-type']
  if (contentType === undefined || /^application\/grpc(?:[+;]|$)/i.test(contentType)) return undefined
  const shown = contentType.slice(0, CONTENT_TYPE_SHOWN_MAX)
  return localEnd(GrpcCode.unknown, `the node responded with content-type ${shown}, not application/grpc`)
}

function localEnd(code: number, message: string): GrpcEnd {
  return { status: { code, message }, isFromServer: false }
}

const CANCELLED = localEnd(GrpcCode.cancelled, 'cancelled')

/** Trailers of gRPC itself or of HTTP, which are not metadata; `http2-settings` belongs to a connection and cannot be sent. */
const OWN_TRAILERS = /^(:|grpc-|content-type$|date$|server$|http2-settings$)/

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
