import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import type { Clock } from '../../core/clock.ts'
import { offersWebSocket } from '../http/request-headers.ts'
import { sendRaw } from '../http/server/reply.ts'
import { requestIdOf } from '../http/server/request-id.ts'
import { createFairFlushScheduler } from '../net/fair-flush-scheduler.ts'
import { WsCloseCode } from './close-codes.ts'
import {
  ServerWsConnection,
  type WsConnection,
  type WsConnectionOptions,
  type WsConnectionOwner,
  type WsMeter,
} from './connection.ts'
import { chooseDeflateOffer, DEFLATE_TERMS } from './deflate.ts'
import { WsSocket } from './socket.ts'

export type WsServerOptions = Partial<WsConnectionOptions> & {
  readonly messageBytesMax: number
  readonly connectionsMax?: number
  readonly pingMs?: number
  /** A peer from which nothing came for so many ping periods, and at most a tenth of one more, is terminated. */
  readonly missesMax?: number
  /** Accepts permessage-deflate. Messages of clients are bounded by `messageBytesMax` before and after inflating. */
  readonly isDeflateOffered?: boolean
}

export type WsRefusal = {
  readonly status: number
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

export type WsServerDeps = {
  readonly clock: Clock
  /** Checks the handshake; a refusal is sent instead of the upgrade. */
  readonly admit?: (request: IncomingMessage) => WsRefusal | undefined
  /** Headers of every response to this URL, the upgrade included; as in `startHttpServer`. */
  readonly headersFor?: ((url: string) => Readonly<Record<string, string>> | undefined) | undefined
  readonly onConnection: (connection: WsConnection, request: IncomingMessage) => void
  readonly meter?: WsMeter | undefined
  /** A peer was terminated because it did not reply to pings. */
  readonly onDead?: (connection: WsConnection) => void
}

export type WsServer = AsyncDisposable & {
  /** For `onUpgrade` of the HTTP server. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  connections(): number
  /** Closes every connection with 1012, spread over `spreadMs` so that not all reconnect at once, and terminates the rest at the deadline. */
  drain(deadlineMs: number, spreadMs?: number): Promise<void>
}

const BEATS_PER_PING = 10
const DEFAULTS = {
  pendingBytesMax: 4 * 1024 * 1024,
  stallMs: 5000,
  closeGraceMs: 1000,
  responseGraceMs: 10_000,
  connectionsMax: 10_000,
  pingMs: 30_000,
  missesMax: 2,
  controlPerSecondMax: 10,
}

/** WebSockets on top of an HTTP server: handshake, limits, heartbeat, and one write per socket and flush. */
export function createWsServer(given: WsServerOptions, deps: WsServerDeps): WsServer {
  const { clock, admit, headersFor, onConnection, onDead } = deps
  const options = { ...DEFAULTS, ...given }
  const connections = new Set<ServerWsConnection>()
  const flushes = createFairFlushScheduler(clock)
  const owner: WsConnectionOwner = {
    onDirty: (connection) => flushes.add(connection),
    onClosed(connection) {
      connections.delete(connection)
      if (connections.size > 0) return
      const listeners = allClosedListeners
      allClosedListeners = []
      for (const listener of listeners) listener()
    },
  }
  /** Resolves each drain: a second one, with a shorter deadline, may come while the first waits. */
  let allClosedListeners: (() => void)[] = []
  let isDraining = false

  const library = new WebSocketServer<typeof WsSocket>({
    WebSocket: WsSocket,
    noServer: true,
    // The library would accept the first sub-protocol that is offered.
    handleProtocols: () => false,
    clientTracking: false,
    perMessageDeflate: options.isDeflateOffered === true ? DEFLATE_TERMS : false,
    maxPayload: options.messageBytesMax,
    autoPong: false,
  })
  if (headersFor !== undefined) {
    library.on('headers', (lines, request) => {
      for (const [name, value] of Object.entries(headersFor(request.url ?? '/') ?? {})) lines.push(`${name}: ${value}`)
    })
  }
  // The library's own response would be text without the headers of the listener.
  library.on('wsClientError', ({ message }, socket, request) => {
    sendRefusal(request, socket, { status: 400, body: JSON.stringify({ error: 'invalid-handshake', message }) })
  })
  const silentBeatsMax = options.missesMax * BEATS_PER_PING
  // A silent peer is pinged before it is given up, also after a single period.
  const beats = { silentBeatsMax, pingBeats: Math.min(BEATS_PER_PING, silentBeatsMax / 2) }
  const heartbeat = clock.setRepeating(options.pingMs / BEATS_PER_PING, () => {
    for (const connection of connections) if (!connection.beat(beats)) onDead?.(connection)
  })
  heartbeat.unref?.()

  function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const refusal = refuse(request)
    if (refusal) return sendRefusal(request, socket, refusal)
    // The library takes no list of protocols.
    request.headers.upgrade = 'websocket'
    if (options.isDeflateOffered === true) declineOtherOffers(request)
    library.handleUpgrade(request, socket, head, (ws) => onConnection(open(ws, socket), request))
  }

  function sendRefusal(request: IncomingMessage, socket: Duplex, { status, body, headers }: WsRefusal): void {
    const common = { ...headersFor?.(request.url ?? '/'), 'x-request-id': requestIdOf(request) }
    sendRaw(socket, status, body, { ...common, ...headers })
  }

  function open(ws: WsSocket, socket: Duplex): ServerWsConnection {
    const remoteAddress = (socket as Socket).remoteAddress ?? ''
    const connection = new ServerWsConnection(options, { ws, socket, remoteAddress, clock, meter: deps.meter, owner })
    connections.add(connection)
    return connection
  }

  function refuse(request: IncomingMessage): WsRefusal | undefined {
    if (request.method !== 'GET') return NOT_A_GET
    if (!isHandshake(request)) return NOT_A_HANDSHAKE
    if (isDraining) return unavailable('the server is shutting down')
    if (connections.size >= options.connectionsMax)
      return unavailable(`limit reached: ${options.connectionsMax} connections`)
    return admit?.(request)
  }

  async function drain(deadlineMs: number, spreadMs = 0): Promise<void> {
    isDraining = true
    heartbeat.cancel()
    const allClosed = new Promise<void>((resolve) => {
      allClosedListeners.push(resolve)
    })
    const timers = [...connections].map((connection, index, all) => {
      const close = () => connection.close(WsCloseCode.serviceRestart, 'server is shutting down')
      if (index > 0 && spreadMs > 0) return clock.setTimer((spreadMs * index) / all.length, close)
      close()
      return undefined
    })
    if (connections.size === 0) return
    const deadline = clock.setTimer(deadlineMs, terminateAll)
    await allClosed
    deadline.cancel()
    for (const timer of timers) timer?.cancel()
  }

  function terminateAll(): void {
    for (const connection of connections) connection.terminate()
  }

  return {
    upgrade,
    connections: () => connections.size,
    drain,
    async [Symbol.asyncDispose]() {
      isDraining = true
      heartbeat.cancel()
      terminateAll()
      library.close()
    },
  }
}

/** The library would refuse the whole handshake for an offer that it cannot accept. */
function declineOtherOffers({ headers }: IncomingMessage): void {
  const offer = chooseDeflateOffer(headers['sec-websocket-extensions'])
  if (offer === undefined) delete headers['sec-websocket-extensions']
  else headers['sec-websocket-extensions'] = offer
}

/** RFC 6455 section 4.2.1: version 13, over HTTP/1.1. The library accepts version 8 and HTTP/1.0 too. */
function isHandshake({ httpVersion, headers }: IncomingMessage): boolean {
  return httpVersion === '1.1' && headers['sec-websocket-version'] === '13' && offersWebSocket(headers.upgrade)
}

function unavailable(error: string): WsRefusal {
  return { status: 503, body: JSON.stringify({ error }), headers: { 'retry-after': '5' } }
}

const NOT_A_GET: WsRefusal = {
  status: 405,
  body: JSON.stringify({ error: 'method-not-allowed', message: 'a WebSocket is opened with GET', methods: ['GET'] }),
  headers: { allow: 'GET' },
}

const NOT_A_HANDSHAKE: WsRefusal = {
  status: 426,
  body: JSON.stringify({ error: 'WebSocket version 13 over HTTP/1.1 is required' }),
  headers: { connection: 'close, upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
}
