import { createServer, isIP, type Server, type Socket } from 'node:net'
import {
  createSecureContext,
  createServer as createTlsServer,
  type SecureContext,
  TLSSocket,
  type Server as TlsServer,
} from 'node:tls'
import type { Clock } from '../../core/clock.ts'
import { messageOf, ServiceError } from '../../core/error.ts'
import { TokenBucket } from '../../core/token-bucket.ts'
import { systemClock } from '../process/clock.ts'
import { type Logger, silentLogger } from '../telemetry/logger.ts'
import {
  type ConnectionCaps,
  type ConnectionCapsOptions,
  type ConnectionCounts,
  type ConnectionRefusal,
  createConnectionCaps,
  isLoopbackAddress,
} from './connection-caps.ts'
import { createDescriptorReserve } from './descriptor-reserve.ts'
import type { OverloadResponse } from './overload-response.ts'
import { withSharedReads } from './shared-reads.ts'
import { createTlsEntry } from './tls-entry.ts'
import { checkTlsFiles, openTlsFiles, type TlsFiles, type TlsFilesOptions } from './tls-files.ts'

export type ListenerOptions = {
  host: string
  /** 0 lets the system choose. */
  port: number
  tls?: TlsFiles | undefined
  /** Set by the operator who runs a TLS proxy in front; without it a public address needs `tls`. */
  plaintext?: 'behind-proxy' | undefined
  /** Open connections of one address, and new ones per second. */
  addressConnectionsMax?: number | undefined
  addressConnectionsPerSecond?: number | undefined
  /** Called for each new connection; false refuses it because memory runs short. */
  mayAccept?: (() => boolean) | undefined
  /** Where connections are counted, for a port that several threads listen on. */
  connectionCounts?: ConnectionCounts | undefined
  /** Several threads of the process listen on this port, and the kernel spreads the connections. `reservePort` gives the number. */
  reusePort?: boolean | undefined
}

/** Why a connection was refused. */
export type ListenerRefusal = AcceptRefusal | 'tls-handshake'
type AcceptRefusal = ConnectionRefusal | 'memory' | 'descriptors'
export const LISTENER_REFUSALS = [
  'connections',
  'address-connections',
  'address-rate',
  'memory',
  'descriptors',
  'tls-handshake',
] as const satisfies ListenerRefusal[]

export type ListenerDeps = {
  /** Called for each connection within the caps, after the TLS handshake where there is one. */
  onConnection(socket: Socket | TLSSocket): void
  log?: Logger | undefined
  clock?: Clock | undefined
  /** Protocols offered in the TLS handshake, for instance ['h2']. */
  alpnProtocols?: string[] | undefined
  /** Lets a peer that has half-closed still read its response, as HTTP/1 needs. */
  allowHalfOpen?: boolean | undefined
  /** Connections without TLS read into this buffer: see `withSharedReads`. */
  readBuffer?: Buffer | undefined
  caps?: ConnectionCapsOptions | undefined
  tlsFiles?: TlsFilesOptions | undefined
  /** The operator's listener may use the reserved descriptors. */
  isForOperator?: boolean | undefined
  /** Responds to a connection that is refused, and closes it; without this it is reset. */
  overloadResponse?: OverloadResponse | undefined
  onRefused?: ((reason: ListenerRefusal) => void) | undefined
  onNotAfter?: ((notAfterMs: number, failure?: string) => void) | undefined
}

export type Listener = AsyncDisposable & {
  readonly address: { host: string; port: number }
  readonly secure: boolean
  /** Open connections, those in the TLS handshake included. */
  connections(): number
  /** Accepts what waits in the queue of the kernel and then no more; the open connections stay. Resolves once the port is free. */
  stopAccepting(): Promise<void>
  /** Resolves when no connection is open. */
  allClosed(): Promise<void>
  /** Destroys every open connection. */
  destroyConnections(): void
}

const TLS_HANDSHAKE_MS = 5000
/** TCP keep-alive: after this long without a byte the system probes the peer. */
const KEEP_ALIVE_PROBE_MS = 30_000
/** TLS handshakes per second with clients over a limit, which are made only to name it. Other such clients are reset before any cryptography. */
const REFUSAL_HANDSHAKES = { capacity: 10, perSecond: 10 }
const BACKLOG = 1024
/** The kernel queues one connection more than the backlog. */
const QUEUE_MAX = BACKLOG + 1

/** The only code that opens TCP ports. Servers above it see accepted connections only. */
export async function openListener(options: ListenerOptions, deps: ListenerDeps): Promise<Listener> {
  refusePublicPlaintext(options)
  const { log = silentLogger, clock = systemClock } = deps
  const caps = createConnectionCaps(capsFor(options, deps.caps), clock, options.connectionCounts)
  const reserve = deps.isForOperator === true ? undefined : createDescriptorReserve(clock)
  const sockets = new Set<Socket>()
  let accepted = 0
  let onAllClosed: (() => void)[] = []

  await using opening = new AsyncDisposableStack()
  let tlsServer: TlsServer | undefined
  let secureContext: SecureContext | undefined
  if (options.tls) {
    const files = opening.use(
      await openTlsFiles(
        options.tls,
        {
          log,
          clock,
          onPair(pair) {
            tlsServer?.setSecureContext(pair)
            secureContext = createSecureContext(pair)
          },
          onNotAfter: deps.onNotAfter,
        },
        deps.tlsFiles,
      ),
    )
    tlsServer = createTlsServer({
      ...files.pair,
      handshakeTimeout: TLS_HANDSHAKE_MS,
      ...(deps.alpnProtocols ? { ALPNProtocols: deps.alpnProtocols } : {}),
    })
    secureContext = createSecureContext(files.pair)
    tlsServer.on('secureConnection', (socket) => deps.onConnection(socket))
    // The runtime has closed the socket already.
    tlsServer.on('tlsClientError', () => deps.onRefused?.('tls-handshake'))
  }

  const refuse = (connection: Socket, peer: string): AcceptRefusal | undefined => {
    if (options.mayAccept?.() === false) return 'memory'
    if (reserve?.isTouchedBy(connection) === true) return 'descriptors'
    return caps.enter(peer)
  }
  const handshakes = createTlsEntry({
    clock,
    firstByteMs: TLS_HANDSHAKE_MS,
    onTls: (socket) => void tlsServer?.emit('connection', socket),
    onRefused: () => deps.onRefused?.('tls-handshake'),
  })
  /** Refused connections whose response is not sent yet. */
  const refused = new Set<Socket>()
  const refuseConnection = createRefuseConnection({
    ...deps,
    clock,
    sizes: caps.sizes,
    secureContext: () => secureContext,
  })
  const { readBuffer, allowHalfOpen = false } = deps
  const accept = (connection: Socket) => {
    accepted += 1
    const peer = connection.remoteAddress
    if (peer === undefined) {
      connection.destroy()
      return
    }
    const refusal = refuse(connection, peer)
    if (refusal) {
      deps.onRefused?.(refusal)
      refused.add(connection)
      connection.once('close', () => refused.delete(connection))
      refuseConnection(connection, refusal)
      return
    }
    const socket = readBuffer && !tlsServer ? withSharedReads(connection, readBuffer, { allowHalfOpen }) : connection
    sockets.add(socket)
    // A reset before the server adds its own error listener must not end the process.
    socket.on('error', ignore)
    socket.once('close', () => {
      sockets.delete(socket)
      caps.leave(peer)
      if (sockets.size > 0) return
      for (const done of onAllClosed) done()
      onAllClosed = []
    })
    if (tlsServer) handshakes.begin(socket)
    else deps.onConnection(socket)
  }

  const server = createServer(
    {
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
      allowHalfOpen,
    },
    accept,
  )
  await listen(server, options)
  server.on('error', (error) => log.error({ err: error }, 'listener failed'))
  opening.defer(() => closeServer(server))
  opening.defer(() => {
    for (const socket of [...sockets, ...refused]) socket.destroy()
  })
  const opened = opening.move()
  const bound = server.address() as { address: string; port: number }
  return {
    address: { host: bound.address, port: bound.port },
    secure: tlsServer !== undefined,
    connections: () => sockets.size,
    async stopAccepting() {
      await acceptWaiting(() => accepted)
      if (server.listening) server.close()
    },
    allClosed: () =>
      sockets.size === 0 ? Promise.resolve() : new Promise((resolve) => void onAllClosed.push(resolve)),
    destroyConnections() {
      for (const socket of sockets) socket.destroy()
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

type RefuseConnectionDeps = Pick<ListenerDeps, 'overloadResponse' | 'alpnProtocols'> & {
  clock: Clock
  sizes: ConnectionCaps['sizes']
  /** Undefined where the port has no TLS. */
  secureContext: () => SecureContext | undefined
}

/** Refuses connections: over HTTP where that costs little, otherwise with a reset. */
function createRefuseConnection({
  overloadResponse,
  alpnProtocols,
  clock,
  sizes,
  secureContext,
}: RefuseConnectionDeps) {
  const handshakes = new TokenBucket(REFUSAL_HANDSHAKES, clock.monotonicMs())
  return (connection: Socket, refusal: AcceptRefusal): void => {
    const isShortage = refusal === 'descriptors' || refusal === 'memory'
    const refused = isShortage ? refusal : { reason: refusal, size: sizes[refusal] }
    const context = secureContext()
    if (overloadResponse === undefined) connection.resetAndDestroy()
    else if (context === undefined) overloadResponse(connection, refused)
    else if (isShortage || !handshakes.take(1, clock.monotonicMs())) connection.resetAndDestroy()
    else
      overloadResponse(connection, refused, (raw) => {
        raw.on('error', ignore)
        const alpn = alpnProtocols ? { ALPNProtocols: alpnProtocols } : {}
        return new TLSSocket(raw, { isServer: true, secureContext: context, ...alpn })
      })
  }
}

/** Throws what `openListener` would throw before it binds the port. */
export async function checkListener(options: ListenerOptions): Promise<void> {
  refusePublicPlaintext(options)
  if (options.tls) await checkTlsFiles(options.tls)
}

/** On a public address the operator must set a certificate or state that a proxy encrypts. */
function refusePublicPlaintext(options: ListenerOptions): void {
  if (options.tls || options.plaintext === 'behind-proxy' || isLoopbackHost(options.host)) return
  const where = printHostPort(options.host, options.port)
  throw new ServiceError('plaintext-public', `${where} is a public address without TLS`, {
    fields: { host: options.host, port: options.port },
    fix: 'Set tls = { cert, key } for this listener, or plaintext = "behind-proxy" when a TLS proxy runs in front of it, or listen on 127.0.0.1.',
  })
}

export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || isLoopbackAddress(host)
}

function printHostPort(host: string, port: number): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`
}

/** Behind a proxy every connection has the proxy's address, so addresses are not limited there. */
function capsFor(options: ListenerOptions, given: ConnectionCapsOptions = {}): ConnectionCapsOptions {
  const { addressConnectionsMax: perAddressMax, addressConnectionsPerSecond: perAddressPerSecond } = options
  const caps = { perAddressMax, perAddressPerSecond, ...given }
  if (options.plaintext !== 'behind-proxy' || caps.isExempt) return caps
  return { ...caps, isExempt: () => true }
}

function listen(server: Server, options: ListenerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) => reject(listenError(error, options))
    server.once('error', onError)
    const { host, port, reusePort = false } = options
    server.listen({ host, port, backlog: BACKLOG, reusePort }, () => {
      server.off('error', onError)
      resolve()
    })
  })
}

export function listenError(error: NodeJS.ErrnoException, options: { host: string; port: number }): ServiceError {
  const where = printHostPort(options.host, options.port)
  const details = { fields: { host: options.host, port: options.port }, cause: error }
  if (error.code === 'EADDRINUSE') {
    return new ServiceError('address-in-use', `port ${options.port} of ${options.host} is in use by another process`, {
      ...details,
      fix: `Find it with: ss -lntup 'sport = :${options.port}' and stop it, or set another port in the config.`,
    })
  }
  if (error.code === 'EACCES') {
    return new ServiceError('address-unavailable', `this user may not listen on ${where}`, {
      ...details,
      fix: 'Use a port of 1024 or above, or give the service CAP_NET_BIND_SERVICE.',
    })
  }
  return new ServiceError('address-unavailable', `cannot listen on ${where}: ${messageOf(error)}`, {
    ...details,
    fix: 'Give an address that this machine has; 0.0.0.0 or :: means all of them.',
  })
}

/**
 * The kernel resets the connections that wait in the queue of a socket when it closes, although their clients are connected and may have sent requests.
 * The runtime accepts one of them in each turn of the event loop, so a turn without one shows an empty queue. The queue is in the order of arrival:
 * after as many as it can hold, those that waited at the beginning are accepted, however many have arrived since.
 */
async function acceptWaiting(accepted: () => number): Promise<void> {
  const last = accepted() + QUEUE_MAX
  // The first one comes in the present turn, which may have polled already.
  await nextTurn()
  let before: number
  do {
    before = accepted()
    await nextTurn()
  } while (accepted() !== before && accepted() < last)
}

/** Resolves after the event loop has polled its sockets. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    if (!server.listening) resolve()
    else server.close(() => resolve())
  })
}

function ignore(): void {}
