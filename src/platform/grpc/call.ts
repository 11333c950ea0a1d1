import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import type { Clock, Timer } from '../../core/clock.ts'
import type { RequestProblem } from './frame-reader.ts'
import { ACCEPTED_ENCODINGS, encodingOf, frameMessage, type GrpcEncoding, responseEncoding } from './framing.ts'
import type { Inflate } from './inflater.ts'
import { RequestReader } from './request-reader.ts'
import { encodeGrpcMessage, GrpcCode, type GrpcStatus, parseGrpcTimeout } from './status.ts'

/** One call of one client, unary or streaming: messages in, messages out, one status at the end. */
export type GrpcCall = {
  /** For example `/geyser.Geyser/Subscribe`. */
  readonly path: string
  readonly metadata: IncomingHttpHeaders
  /** Names and values alternating, as received: `metadata` hides duplicate names. */
  readonly rawMetadata: readonly string[]
  readonly remoteAddress: string
  /** Sent as `x-request-id` in the trailers of a call that fails. */
  readonly requestId: string
  /** Encoding of the messages this side sends: the one the client uses itself, if it accepts it. */
  readonly sendEncoding: GrpcEncoding
  /** Starts reading: before the listener is set nothing is read, inflated or decoded. */
  onMessage(listener: (message: Uint8Array) => void, limits?: MessageLimits): void
  /** The client sends no more messages and still receives. */
  onHalfClose(listener: () => void): void
  /** This side ends the call: called before its status is sent, at most once. */
  onStatus(listener: (status: GrpcStatus) => void): void
  /** The call is over; with the status, where this side ended it. Called exactly once, and late where the client keeps its side open. */
  onClose(listener: (status?: GrpcStatus) => void): void
  /** Everything written so far has left, after a write that returned false. */
  onWritable(listener: () => void): void
  /** The server is about to stop: a long call should end itself. */
  onShutdown(listener: () => void): void
  pauseMessages(): void
  resumeMessages(): void
  /** Reads no more messages: what the client sends is dropped, not kept until the end of the call. */
  discardMessages(): void
  /** Sends the headers now; otherwise they leave with the first message. */
  sendHeaders(metadata?: Readonly<Record<string, string>>): void
  /** Encodes, frames and writes one message. After false the caller should wait for `onWritable`. */
  send(message: Uint8Array): boolean
  /** Writes messages that have their prefixes already. After false the caller should wait for `onWritable`. */
  writeFramed(frames: Uint8Array): boolean
  /** The same for several pieces at once. `onSent` is called when their bytes are not used any more; never on a call that is reset. */
  writePieces(pieces: readonly Uint8Array[], onSent: () => void): boolean
  end(status: GrpcStatus): void
  /** Resets the call without a status; what was written may be lost. */
  abort(): void
  /** Allows no further call on the connection, which closes after its last open call. */
  closeConnection(): void
  readonly isOver: boolean
}

export type MessageLimits = {
  /** Bytes of one message, as it arrives and inflated. Evaluated for each message. */
  readonly bytesMax: () => number
  /** Called for a message that is refused, right before the call ends with the status. */
  readonly onRefused?: (problem: RequestProblem) => void
}

export type GrpcCallOptions = {
  readonly messageBytesMax: number
  /** How long a client that does not read may delay the end of its call. */
  readonly endGraceMs: number
}

type GrpcCallParts = {
  readonly stream: ServerHttp2Stream
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
  readonly requestId: string
  readonly clock: Clock
  readonly inflate: Inflate
}

export function createGrpcCall(
  options: GrpcCallOptions,
  { stream, headers, rawHeaders, requestId, clock, inflate }: GrpcCallParts,
): GrpcCall & { shutdown(): void } {
  const { messageBytesMax, endGraceMs } = options
  const sendEncoding = responseEncoding(headers)
  const statusListeners: ((status: GrpcStatus) => void)[] = []
  const closeListeners: ((status?: GrpcStatus) => void)[] = []
  const shutdownListeners: (() => void)[] = []
  const endListeners: (() => void)[] = []
  let reader: RequestReader | undefined
  let isPaused = false
  let endedBy: GrpcStatus | undefined
  let trailers: Record<string, string> | undefined
  let isClosed = false
  let timer: Timer | undefined

  const timeoutMs = parseGrpcTimeout(headers['grpc-timeout'] as string | undefined)
  if (timeoutMs !== undefined) {
    timer = clock.setTimer(timeoutMs, () => end({ code: GrpcCode.deadlineExceeded, message: 'deadline exceeded' }))
  }

  stream.on('wantTrailers', () => stream.sendTrailers(trailers ?? {}))
  // The client reset the stream or the connection broke: 'close' follows and ends the call.
  stream.on('error', () => {})
  stream.on('close', () => {
    isClosed = true
    reader?.close()
    timer?.cancel()
    for (const listener of closeListeners) listener(endedBy)
  })

  function onMessage(listener: (message: Uint8Array) => void, limits?: MessageLimits): void {
    const messages = new RequestReader({
      encoding: encodingOf(headers['grpc-encoding']) ?? 'identity',
      source: stream,
      inflate,
      bytesMax: () => Math.min(messageBytesMax, limits?.bytesMax() ?? messageBytesMax),
      onMessage: listener,
      onEnd() {
        for (const ended of endListeners) ended()
      },
      onProblem(problem) {
        limits?.onRefused?.(problem)
        end(problem)
      },
    })
    reader = messages
    if (isPaused) messages.pause()
    stream.on('data', (chunk: Buffer) => messages.push(chunk))
    // A request without a body may have ended before the call was admitted. The caller adds its listeners first.
    if (stream.readableEnded) queueMicrotask(() => messages.end())
    else stream.on('end', () => messages.end())
  }

  function sendHeaders(metadata: Readonly<Record<string, string>> = {}): void {
    if (stream.headersSent || isOver()) return
    stream.respond(
      {
        ':status': 200,
        'content-type': 'application/grpc',
        'grpc-accept-encoding': ACCEPTED_ENCODINGS,
        ...(sendEncoding === 'identity' ? {} : { 'grpc-encoding': sendEncoding }),
        ...metadata,
      },
      { waitForTrailers: true },
    )
  }

  function writeFramed(frames: Uint8Array): boolean {
    if (isOver()) return false
    sendHeaders()
    return stream.write(frames)
  }

  function writePieces(pieces: readonly Uint8Array[], onSent: () => void): boolean {
    if (isOver()) return false
    sendHeaders()
    // One piece needs no cork, which costs as much as the write.
    if (pieces.length === 1) return stream.write(pieces[0] as Uint8Array, (error) => error ?? onSent())
    stream.cork()
    let isWritable = true
    for (const [index, piece] of pieces.entries()) {
      const isLast = index === pieces.length - 1
      // On a stream that is reset the runtime may still be writing the bytes, so an error does not release them.
      isWritable = isLast ? stream.write(piece, (error) => error ?? onSent()) : stream.write(piece)
    }
    stream.uncork()
    return isWritable
  }

  function end(status: GrpcStatus): void {
    if (isOver()) return
    endedBy = status
    for (const listener of statusListeners) listener(status)
    trailers = { ...statusTrailers(status), ...(status.code === GrpcCode.ok ? {} : { 'x-request-id': requestId }) }
    reader?.close()
    timer?.cancel()
    if (stream.headersSent) stream.end()
    else stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...trailers }, { endStream: true })
    // What the client still sends is discarded. A reset now would overtake the status, so a client that keeps its side open
    // or does not read is reset after the grace.
    stream.resume()
    timer = clock.setTimer(endGraceMs, abort)
    timer.unref?.()
  }

  function abort(): void {
    if (!isClosed) stream.close(constants.NGHTTP2_CANCEL)
  }

  function isOver(): boolean {
    // A stream that the client has reset is closed before it is destroyed, and refuses a response then.
    return isClosed || trailers !== undefined || stream.closed || stream.destroyed
  }

  return {
    path: headers[':path'] ?? '',
    metadata: headers,
    rawMetadata: rawHeaders,
    remoteAddress: stream.session?.socket?.remoteAddress ?? '',
    requestId,
    sendEncoding,
    onMessage,
    onHalfClose: (listener) => void endListeners.push(listener),
    onStatus: (listener) => void statusListeners.push(listener),
    onClose(listener) {
      if (isClosed) listener(endedBy)
      else closeListeners.push(listener)
    },
    onWritable: (listener) => void stream.on('drain', listener),
    onShutdown: (listener) => void shutdownListeners.push(listener),
    discardMessages() {
      reader?.close()
      stream.resume()
    },
    pauseMessages() {
      isPaused = true
      reader?.pause()
    },
    resumeMessages() {
      isPaused = false
      reader?.resume()
    },
    sendHeaders,
    send: (message) => writeFramed(frameMessage(message, sendEncoding)),
    writeFramed,
    writePieces,
    end,
    abort,
    closeConnection: () => stream.session?.close(),
    get isOver() {
      return isOver()
    },
    shutdown() {
      for (const listener of shutdownListeners) listener()
    },
  }
}

function statusTrailers({ code, message, metadata }: GrpcStatus): Record<string, string> {
  return {
    ...metadata,
    'grpc-status': String(code),
    ...(message === undefined ? {} : { 'grpc-message': encodeGrpcMessage(message) }),
  }
}
