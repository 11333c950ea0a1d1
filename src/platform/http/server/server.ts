import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Clock, Timer } from '../../../core/clock.ts'
import type { ConnectionCapsOptions } from '../../net/connection-caps.ts'
import { type ListenerOptions, type ListenerRefusal, openListener } from '../../net/listener.ts'
import { createOverloadResponse } from '../../net/overload-response.ts'
import type { TlsFilesOptions } from '../../net/tls-files.ts'
import { createStallWatch } from '../../net/write-stall.ts'
import { delay, systemClock } from '../../process/clock.ts'
import type { Logger } from '../../telemetry/logger.ts'
import { offersWebSocket } from '../request-headers.ts'
import { BODY_PIECES, limitBodyPieces, WAITING_BODY_PIECES } from './body-pieces.ts'
import { createFastPathServer, type FastPathServer } from './fast-path-server.ts'
import { limitLargeHeads } from './large-heads.ts'
import { continueInTurn, handOverInTurn, PipelineQueue } from './pipeline-queue.ts'
import { INTERNAL_BODY, type PostHandler } from './post.ts'
import { refuseHead } from './refuse-head.ts'
import { sendJson, sendRaw } from './reply.ts'
import { type RequestRefusal, requestRefusal } from './request-refusals.ts'

export type HttpServerOptions = {
  listen: ListenerOptions
  headersTimeoutMs?: number
  requestTimeoutMs?: number
  /** How long a connection may stay idle between two requests. */
  keepAliveMs?: number
  /** Bytes of the head: its URL and its header fields. */
  headerBytesMax?: number
  /** Bytes of the header fields alone, where the URL may be longer than they. */
  fieldBytesMax?: number
  headerFieldsMax?: number
  requestsPerConnectionMax?: number
  /** A peer that reads nothing of a response for so long is closed. */
  stallMs?: number
  /** Bytes that wait for all peers together to read them; and, counted apart, those that all peers have pipelined. */
  pendingBytesMax?: number
  caps?: ConnectionCapsOptions
  tlsFiles?: TlsFilesOptions
}

export type HttpServerDeps = {
  log: Logger
  clock?: Clock | undefined
  onRequest(request: IncomingMessage, response: ServerResponse): void | Promise<void>
  /**
   * Handles POSTs to `/` on the fast path: those in the form that nearly all have. Others come to `onRequest`, which passes them to the same
   * handler with `respondToPost`.
   */
  fastPathPosts?: PostHandler | undefined
  /** Headers of every response to this URL, for instance that its version is retired. */
  headersFor?: ((url: string) => Readonly<Record<string, string>> | undefined) | undefined
  /** The response to a head above `headerBytesMax`, for clients that expect errors in a form of their own. */
  headTooLarge?: { status: number; body: string; headers: Readonly<Record<string, string>> } | undefined
  onUpgrade?: ((request: IncomingMessage, socket: Duplex, head: Buffer) => void) | undefined
  /**
   * Receives each new connection before HTTP does, for an endpoint with a parser of its own. It passes other connections to
   * `HttpServer.handleConnection`.
   */
  onConnection?: ((socket: Socket) => void) | undefined
  isForOperator?: boolean | undefined
  onRefused?: ((reason: ListenerRefusal) => void) | undefined
  onNotAfter?: ((notAfterMs: number, failure?: string) => void) | undefined
}

export type HttpServer = AsyncDisposable & {
  readonly address: { host: string; port: number }
  readonly secure: boolean
  readonly draining: boolean
  connections(): number
  /** Gives HTTP a connection that `onConnection` received. Bytes already read go back by `socket.unshift` first. */
  handleConnection(socket: Socket): void
  /** From now on every response has `connection: close`; connections are still accepted. */
  beginLameDuck(): void
  /**
   * Ends in three steps: for `lameDuckMs` new connections are still accepted while every response has `connection: close`; then the port is closed
   * and with it idle connections; what is still open at the deadline is destroyed.
   */
  drain(deadlineMs: number, options?: { lameDuckMs?: number }): Promise<void>
}

/** Tighter than Node's own: 60 s, 300 s and a check every 30 s. */
const DEFAULTS = {
  headersTimeoutMs: 5000,
  requestTimeoutMs: 15_000,
  keepAliveMs: 65_000,
  headerBytesMax: 16 * 1024,
  fieldBytesMax: 16 * 1024,
  headerFieldsMax: 64,
  requestsPerConnectionMax: 10_000,
  stallMs: 10_000,
  pendingBytesMax: 64 * 1024 * 1024,
}
const CHECK_PERIOD_MS = 1000
/** More than a fast-path request has, head and body. */
const READ_BYTES = 80 * 1024

export async function startHttpServer(given: HttpServerOptions, deps: HttpServerDeps): Promise<HttpServer> {
  const options = { ...DEFAULTS, ...given }
  const { log, clock = systemClock } = deps
  /** Those under way. */
  const responses = new Set<ServerResponse>()
  const stalls = createStallWatch(options)
  let draining = false

  const queue = new PipelineQueue()
  // Upgraded connections have their own rules for slow readers.
  const http = createHttp(options, deps, { queue, onUpgraded: (socket) => stalls.forget(socket) })
  continueInTurn(http, (request) => queue.hasEnded(request.socket) || refuseHead(request, options) !== undefined)
  if (options.headerBytesMax > DEFAULTS.headerBytesMax)
    limitLargeHeads(http, { isBehindProxy: options.listen.plaintext === 'behind-proxy', refuse: refuseLargeHead })
  const fastPath = createFastPath(http, () => draining, options, { ...deps, clock })
  http.on('request', (request: IncomingMessage, response: ServerResponse) => {
    // The runtime would keep what comes behind the last request until its response is read.
    if (queue.hasEnded(request.socket)) return void request.socket.pause()
    const refusal = refuseHead(request, options)
    limitBodyPieces(
      request,
      () => (queue.isWaiting(request) ? WAITING_BODY_PIECES : BODY_PIECES),
      () => refusePieces(request.socket),
    )
    if (refusal === undefined) return queue.add({ request, response, handle: () => handle(request, response) })
    response.shouldKeepAlive = false
    queue.addLast({ request, response, handle: () => sendJson(response, refusal.status, refusal.body) })
  })

  function refusePieces(socket: Socket): void {
    const message =
      'the body has too many chunks for its size; limit: bodyPieces. Send larger chunks, or a content-length'
    queue.fail(socket, () => sendRaw(socket, 413, JSON.stringify({ error: 'body-pieces', message })))
  }

  function refuseLargeHead(socket: Socket): void {
    const message = 'this address has sent too much of requests that are not complete; limit: headBytes'
    queue.fail(socket, () => sendRaw(socket, 429, JSON.stringify({ error: 'head-bytes', message })))
    // The response may have to wait for those to earlier requests.
    socket.pause()
  }

  function handle(request: IncomingMessage, response: ServerResponse): void {
    responses.add(response)
    if (draining) response.shouldKeepAlive = false
    response.once('close', () => {
      responses.delete(response)
      if (draining) http.closeIdleConnections()
    })
    for (const [name, value] of Object.entries(deps.headersFor?.(request.url ?? '/') ?? {}))
      response.setHeader(name, value)
    runHandler(() => deps.onRequest(request, response), response, log)
  }

  await using opening = new AsyncDisposableStack()
  opening.defer(() => void http.close())
  const listener = opening.use(
    await openListener(options.listen, {
      log,
      clock,
      allowHalfOpen: true,
      readBuffer: fastPath && Buffer.allocUnsafeSlow(READ_BYTES),
      alpnProtocols: ['http/1.1'],
      caps: options.caps,
      tlsFiles: options.tlsFiles,
      isForOperator: deps.isForOperator,
      overloadResponse: createOverloadResponse(clock),
      onRefused: deps.onRefused,
      onNotAfter: deps.onNotAfter,
      onConnection(socket) {
        stalls.watch(socket)
        if (deps.onConnection) deps.onConnection(socket)
        else if (fastPath) fastPath.handleConnection(socket)
        else handleConnection(socket)
      },
    }),
  )
  const sweep = clock.setRepeating(CHECK_PERIOD_MS, () => {
    stalls.sweep(clock.monotonicMs())
    fastPath?.sweep()
  })
  sweep.unref?.()
  opening.use(sweep)
  const opened = opening.move()

  function handleConnection(socket: Socket): void {
    http.emit('connection', socket)
  }

  function beginLameDuck(): void {
    draining = true
    for (const response of responses) {
      if (!response.headersSent) response.shouldKeepAlive = false
    }
  }

  async function drain(deadlineMs: number, { lameDuckMs = 0 }: { lameDuckMs?: number } = {}): Promise<void> {
    beginLameDuck()
    const endMs = clock.monotonicMs() + deadlineMs
    if (lameDuckMs > 0) await delay(clock, Math.min(lameDuckMs, deadlineMs))
    await listener.stopAccepting()
    http.closeIdleConnections()
    fastPath?.closeIdle()
    let timer: Timer | undefined
    const deadline = new Promise<void>((resolve) => {
      timer = clock.setTimer(Math.max(0, endMs - clock.monotonicMs()), resolve)
    })
    await Promise.race([listener.allClosed(), deadline])
    timer?.cancel()
    if (listener.connections() > 0) {
      log.warn({ connections: listener.connections() }, 'connections destroyed at the drain deadline')
    }
    await opened.disposeAsync()
  }

  return {
    address: listener.address,
    secure: listener.secure,
    get draining() {
      return draining
    },
    connections: () => listener.connections(),
    handleConnection,
    beginLameDuck,
    drain,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

function createFastPath(
  http: Server,
  isDraining: () => boolean,
  options: typeof DEFAULTS,
  { fastPathPosts, clock, log }: HttpServerDeps & { clock: Clock },
): FastPathServer | undefined {
  if (fastPathPosts === undefined) return undefined
  return createFastPathServer(options, {
    handler: fastPathPosts,
    clock,
    log,
    isDraining,
    handOver: (socket) => void http.emit('connection', socket),
  })
}

function createHttp(
  options: typeof DEFAULTS,
  deps: HttpServerDeps,
  { queue, onUpgraded }: { readonly queue: PipelineQueue; onUpgraded(socket: Duplex): void },
): Server {
  const http = createServer({
    headersTimeout: options.headersTimeoutMs,
    requestTimeout: options.requestTimeoutMs,
    keepAliveTimeout: options.keepAliveMs,
    connectionsCheckingInterval: CHECK_PERIOD_MS,
    maxHeaderSize: options.headerBytesMax,
    insecureHTTPParser: false,
    joinDuplicateHeaders: false,
    // Checked by `refuseHead`: after its own refusal the runtime would go on with the next requests.
    requireHostHeader: false,
    // Other protocols, such as the h2c that some clients offer with every request, are ignored (RFC 9110 section 7.8).
    shouldUpgradeCallback: ({ headers }) => deps.onUpgrade !== undefined && offersWebSocket(headers.upgrade),
  })
  http.maxHeadersCount = options.headerFieldsMax
  http.maxRequestsPerSocket = options.requestsPerConnectionMax
  // Without this the server closes when a client half-closes, and a slow response is lost.
  Object.assign(http, { httpAllowHalfOpen: true })
  const { onUpgrade } = deps
  if (onUpgrade) {
    handOverInTurn(http, queue, 'upgrade', (request, socket, head) => {
      const refusal = refuseHead(request, options)
      if (refusal) return sendRaw(socket, refusal.status, JSON.stringify(refusal.body))
      onUpgrade(request, socket, head)
      // A refused one stays watched: its peer may not read the refusal.
      if (!socket.writableEnded) onUpgraded(socket)
    })
  }
  // Without a listener the runtime closes the connection and sends nothing.
  handOverInTurn(http, queue, 'connect', (_request, socket) => sendRaw(socket, 501, JSON.stringify(NO_TUNNEL)))
  http.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const { headTooLarge: own } = deps
    queue.fail(socket, () => {
      if (own && error.code === 'HPE_HEADER_OVERFLOW') return sendRaw(socket, own.status, own.body, own.headers)
      // The parser's error message is not sent: it may quote the request.
      const { status, body } = CLIENT_ERRORS[error.code ?? ''] ?? requestRefusal('malformed-request')
      sendRaw(socket, status, JSON.stringify(body))
    })
  })
  // The runtime checks the timeouts of a server that listens. This one is handed its connections.
  http.emit('listening')
  return http
}

/** RFC 9110 section 15.6.2: CONNECT is served for no target. */
const NO_TUNNEL = { error: 'method-not-implemented', message: 'CONNECT is not served: this is no proxy' }

const CLIENT_ERRORS: Readonly<Record<string, RequestRefusal>> = {
  HPE_HEADER_OVERFLOW: requestRefusal('headers-too-large'),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: requestRefusal('body-too-large'),
  ERR_HTTP_REQUEST_TIMEOUT: requestRefusal('request-timeout'),
}

function runHandler(handle: () => void | Promise<void>, response: ServerResponse, log: Logger): void {
  const fail = (error: unknown) => {
    // Handlers set it first, so that the response and the log have the same id.
    log.error({ err: error, request_id: response.getHeader('x-request-id') }, 'request handler failed')
    if (response.headersSent) response.destroy()
    else sendJson(response, 500, INTERNAL_BODY)
  }
  try {
    handle()?.catch(fail)
  } catch (error) {
    fail(error)
  }
}
