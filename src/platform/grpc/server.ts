import {
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { createRequestIds } from '../http/server/request-id.ts'
import type { ConnectionCapsOptions } from '../net/connection-caps.ts'
import { type ListenerOptions, openListener } from '../net/listener.ts'
import type { ListenerMetrics } from '../net/listener-metrics.ts'
import type { TlsFilesOptions } from '../net/tls-files.ts'
import { secureRandom } from '../process/random.ts'
import type { Logger } from '../telemetry/logger.ts'
import { createGrpcCall, type GrpcCall } from './call.ts'
import { ACCEPTED_ENCODINGS, encodingOf } from './framing.ts'
import { createInflater, type Inflate } from './inflater.ts'
import { watchSession } from './session.ts'
import { GrpcCode, type GrpcStatus } from './status.ts'

export type GrpcServerOptions = {
  readonly listen: ListenerOptions
  readonly caps?: ConnectionCapsOptions
  readonly tlsFiles?: TlsFilesOptions
  readonly streamsPerConnectionMax?: number
  readonly sessionMemoryMiBMax?: number
  readonly messageBytesMax?: number
  readonly metadataBytesMax?: number
  /** A connection that has not sent its HTTP/2 settings by then is closed. */
  readonly firstBytesMs?: number
  readonly keepAliveMs?: number
  readonly keepAliveTimeoutMs?: number
  /** How long a client that does not read may delay the end of its call. */
  readonly endGraceMs?: number
}

export type GrpcServerDeps = {
  readonly log: Logger
  readonly clock: Clock
  /** For the ids of requests. */
  readonly random?: Random
  /** Called for each call that is refused here, with its response. Where it is false, the connection is closed once its open calls have ended. */
  mayRefuse?(peer: { readonly remoteAddress: string; readonly headers: readonly string[] }): boolean
  /** Called for each valid call, which lives until `end`, `abort` or a reset by the client. */
  onCall(call: GrpcCall): void
} & Partial<ListenerMetrics>

export type GrpcServer = AsyncDisposable & {
  readonly address: { readonly host: string; readonly port: number }
  readonly openCalls: number
  /** Accepts no more calls, notifies the open ones, and waits for them until the deadline. */
  drain(deadlineMs: number): Promise<void>
}

/** Node's own default would allow 4 billion streams. */
const DEFAULTS = {
  streamsPerConnectionMax: 100,
  sessionMemoryMiBMax: 16,
  messageBytesMax: 4 * 1024 * 1024,
  metadataBytesMax: 8 * 1024,
  firstBytesMs: 5000,
  keepAliveMs: 30_000,
  keepAliveTimeoutMs: 10_000,
  endGraceMs: 5000,
}
/** Large enough that a request of the maximum size needs few round trips. */
const WINDOW_BYTES = 1024 * 1024

/** A gRPC server on node:http2. It frames, limits and ends calls; `onCall` serves them. */
export async function startGrpcServer(given: GrpcServerOptions, deps: GrpcServerDeps): Promise<GrpcServer> {
  const options = { ...DEFAULTS, ...given }
  const { log, clock } = deps
  const sessions = new Set<ServerHttp2Session>()
  const calls = new Set<ReturnType<typeof createGrpcCall>>()
  const inflater = createInflater()
  const requestIdOf = createRequestIds({ clock, random: deps.random ?? secureRandom })
  const inflateOf = new WeakMap<object, Inflate>()

  const http2: Http2Server = createServer({
    maxSessionMemory: options.sessionMemoryMiBMax,
    settings: {
      maxConcurrentStreams: options.streamsPerConnectionMax,
      maxHeaderListSize: options.metadataBytesMax,
      initialWindowSize: WINDOW_BYTES,
      enablePush: false,
    },
  })
  http2.on('session', (session) => {
    sessions.add(session)
    inflateOf.set(session, inflater.forConnection())
    session.setLocalWindowSize(WINDOW_BYTES)
    session.on('close', () => sessions.delete(session))
    watchSession(session, { clock, options })
  })
  http2.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, raw: string[]) =>
    accept(stream, headers, raw),
  )
  http2.on('sessionError', (err) => log.debug({ err }, 'gRPC connection failed'))

  function accept(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: readonly string[]): void {
    const refusal = refuse(stream, headers)
    if (refusal !== undefined) {
      const remoteAddress = stream.session?.socket?.remoteAddress ?? ''
      if (deps.mayRefuse?.({ remoteAddress, headers: rawHeaders }) === false) stream.session?.close()
    }
    if (refusal === 'responded') return
    const inflate = inflateOf.get(stream.session as object) ?? inflater.forConnection()
    const requestId = requestIdOf(rawHeaders)
    const call = createGrpcCall(options, { stream, headers, rawHeaders, requestId, clock, inflate })
    calls.add(call)
    call.onClose(() => calls.delete(call))
    if (refusal) call.end(refusal)
    else deps.onCall(call)
  }

  /** Refuses a call: an HTTP status for what is not gRPC, a gRPC status for what is. */
  function refuse(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): GrpcStatus | 'responded' | undefined {
    const httpStatus =
      headers[':method'] !== 'POST' ? 405 : isGrpcContentType(headers['content-type']) ? undefined : 415
    if (httpStatus !== undefined) {
      stream.on('error', () => {})
      stream.respond({ ':status': httpStatus }, { endStream: true })
      stream.resume()
      const timer = clock.setTimer(options.endGraceMs, () => stream.close(constants.NGHTTP2_NO_ERROR))
      stream.on('close', () => timer.cancel())
      return 'responded'
    }
    if (metadataBytes(headers) > options.metadataBytesMax) {
      return { code: GrpcCode.resourceExhausted, message: `metadata larger than ${options.metadataBytesMax} bytes` }
    }
    if (encodingOf(headers['grpc-encoding']) === undefined) {
      return {
        code: GrpcCode.unimplemented,
        message: `grpc-encoding ${String(headers['grpc-encoding']).slice(0, 32)} is not supported; supported: ${ACCEPTED_ENCODINGS}`,
        metadata: { 'grpc-accept-encoding': ACCEPTED_ENCODINGS },
      }
    }
    return undefined
  }

  const listener = await openListener(options.listen, {
    log,
    clock,
    alpnProtocols: ['h2'],
    caps: options.caps,
    tlsFiles: options.tlsFiles,
    onRefused: deps.onRefused,
    onNotAfter: deps.onNotAfter,
    onConnection: (socket) => void http2.emit('connection', socket),
  })

  async function drain(deadlineMs: number): Promise<void> {
    const deadline = clock.setTimer(deadlineMs, () => listener.destroyConnections())
    await listener.stopAccepting()
    // The GOAWAY of `close` keeps new calls from coming; `shutdown` asks the open ones to end.
    for (const session of sessions) session.close()
    for (const call of calls) call.shutdown()
    await listener.allClosed()
    deadline.cancel()
    await listener[Symbol.asyncDispose]()
  }

  return {
    address: listener.address,
    get openCalls() {
      return calls.size
    },
    drain,
    // Destroyed connections are UNAVAILABLE for clients; reset streams would be an error of the call.
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  }
}

function isGrpcContentType(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/grpc(?:\+proto)?(?:;|$)/i.test(contentType)
}

/** RFC 9113 section 10.5.1: names, values and 32 bytes for each field. */
function metadataBytes(headers: IncomingHttpHeaders): number {
  let bytes = 0
  for (const [name, value] of Object.entries(headers)) {
    for (const one of Array.isArray(value) ? value : [value]) bytes += name.length + String(one ?? '').length + 32
  }
  return bytes
}
