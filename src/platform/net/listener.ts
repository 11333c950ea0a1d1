import { createServer, isIP, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from 'node:tls'
import type { Clock } from '../../core/clock.ts'
import { messageOf, ServiceError } from '../../core/error.ts'
import { systemClock } from '../process/clock.ts'
import { type Logger, silentLogger } from '../telemetry/logger.ts'
import {
  type ConnectionCapsOptions,
  type ConnectionRefusal,
  createConnectionCaps,
  isLoopbackAddress,
} from './connection-caps.ts'
import { createDescriptorReserve } from './descriptor-reserve.ts'
import { withSharedReads } from './shared-reads.ts'
import { checkTlsFiles, openTlsFiles, type TlsFiles, type TlsFilesOptions } from './tls-files.ts'

export type ListenerOptions = {
  host: string
  /** 0 lets the system choose. */
  port: number
  tls?: TlsFiles | undefined
  /** Said by the operator who runs a TLS proxy in front; without it a public address needs `tls`. */
  plaintext?: 'behind-proxy' | undefined
  /** Asked for each new connection; false turns it away, since memory runs short. */
  mayAccept?: (() => boolean) | undefined
}

/** Why a connection was not let in. */
export type ListenerRefusal = ConnectionRefusal | 'memory' | 'descriptors' | 'tls-handshake'
export const LISTENER_REFUSALS = [
  'connections',
  'address-connections',
  'address-rate',
  'memory',
  'descriptors',
  'tls-handshake',
] as const satisfies ListenerRefusal[]

export type ListenerDeps = {
  /** A connection that may speak: past the caps, and past the TLS handshake where there is one. */
  onConnection(socket: Socket | TLSSocket): void
  log?: Logger | undefined
  clock?: Clock | undefined
  /** Protocols offered in the TLS handshake, for instance ['h2']. */
  alpnProtocols?: string[] | undefined
  /** Lets a peer that has finished sending still read its answer, as HTTP/1 needs. */
  allowHalfOpen?: boolean | undefined
  /** Connections without TLS read into this: see `withSharedReads`. */
  readBuffer?: Buffer | undefined
  caps?: ConnectionCapsOptions | undefined
  tlsFiles?: TlsFilesOptions | undefined
  /** The operator's own door: takes the descriptors that are kept back from others. */
  isForOperator?: boolean | undefined
  /** Says to a connection without TLS why it has to go, and lets it go; without this it is reset. */
  overloadResponse?: ((socket: Socket, want: 'descriptors' | 'memory') => void) | undefined
  onRefused?: ((reason: ListenerRefusal) => void) | undefined
  onNotAfter?: ((notAfterMs: number) => void) | undefined
}

export type Listener = AsyncDisposable & {
  readonly address: { host: string; port: number }
  readonly secure: boolean
  /** Open connections, those in the TLS handshake included. */
  connections(): number
  /** Takes no more connections; the open ones live on. */
  stopAccepting(): Promise<void>
  /** Resolves when no connection is open any more. */
  allClosed(): Promise<void>
  /** Cuts every open connection. */
  destroyConnections(): void
}

const TLS_HANDSHAKE_MS = 5000
/** After this long without a byte the system probes whether the peer still exists. */
const KEEP_ALIVE_PROBE_MS = 30_000
const BACKLOG = 1024

/** The one code that opens TCP ports. The doors above it only ever see sockets that are allowed to speak. */
export async function openListener(options: ListenerOptions, deps: ListenerDeps): Promise<Listener> {
  refusePublicPlaintext(options)
  const { log = silentLogger, clock = systemClock } = deps
  const caps = createConnectionCaps(capsFor(options, deps.caps), clock)
  const reserve = deps.isForOperator === true ? undefined : createDescriptorReserve(clock)
  const sockets = new Set<Socket>()
  let onAllClosed: (() => void)[] = []

  await using opening = new AsyncDisposableStack()
  let tlsServer: TlsServer | undefined
  if (options.tls) {
    const files = opening.use(
      await openTlsFiles(
        options.tls,
        {
          log,
          clock,
          onPair: (pair) => tlsServer?.setSecureContext(pair),
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
    tlsServer.on('secureConnection', (socket) => deps.onConnection(socket))
    // A broken handshake is weather: the runtime has closed the socket already.
    tlsServer.on('tlsClientError', () => deps.onRefused?.('tls-handshake'))
  }

  const refuse = (accepted: Socket, peer: string): ListenerRefusal | undefined => {
    if (options.mayAccept?.() === false) return 'memory'
    if (reserve?.isTouchedBy(accepted) === true) return 'descriptors'
    return caps.enter(peer)
  }
  const { readBuffer, allowHalfOpen = false } = deps
  const accept = (accepted: Socket) => {
    const peer = accepted.remoteAddress
    if (peer === undefined) {
      accepted.destroy()
      return
    }
    const refusal = refuse(accepted, peer)
    if (refusal) {
      deps.onRefused?.(refusal)
      const isWant = refusal === 'descriptors' || refusal === 'memory'
      if (isWant && deps.overloadResponse && !tlsServer) deps.overloadResponse(accepted, refusal)
      else accepted.resetAndDestroy()
      return
    }
    const socket = readBuffer && !tlsServer ? withSharedReads(accepted, readBuffer, { allowHalfOpen }) : accepted
    sockets.add(socket)
    // A reset between accept and the door's own listener must not end the process.
    socket.on('error', ignore)
    socket.once('close', () => {
      sockets.delete(socket)
      caps.leave(peer)
      if (sockets.size > 0) return
      for (const done of onAllClosed) done()
      onAllClosed = []
    })
    if (tlsServer) tlsServer.emit('connection', socket)
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
    for (const socket of sockets) socket.destroy()
  })
  const opened = opening.move()
  const bound = server.address() as { address: string; port: number }
  return {
    address: { host: bound.address, port: bound.port },
    secure: tlsServer !== undefined,
    connections: () => sockets.size,
    stopAccepting: () => stopListening(server),
    allClosed: () =>
      sockets.size === 0 ? Promise.resolve() : new Promise((resolve) => void onAllClosed.push(resolve)),
    destroyConnections() {
      for (const socket of sockets) socket.destroy()
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** The operator must say that a proxy encrypts, or give a certificate; plain text on a public address is no accident. */
/** Throws what opening the listener would throw before it asks the system for the port. */
export async function checkListener(options: ListenerOptions): Promise<void> {
  refusePublicPlaintext(options)
  if (options.tls) await checkTlsFiles(options.tls)
}

function refusePublicPlaintext(options: ListenerOptions): void {
  if (options.tls || options.plaintext === 'behind-proxy' || isLoopbackHost(options.host)) return
  const where = printHostPort(options.host, options.port)
  throw new ServiceError('plaintext-public', `${where} is a public address without TLS`, {
    fields: { host: options.host, port: options.port },
    fix: 'Set tls = { cert, key } for this listener, or plaintext = "behind-proxy" when a TLS proxy stands in front of it, or listen on 127.0.0.1.',
  })
}

export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || isLoopbackAddress(host)
}

function printHostPort(host: string, port: number): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`
}

/** Behind a proxy every connection has the proxy's address, so addresses are not counted there. */
function capsFor(options: ListenerOptions, caps: ConnectionCapsOptions = {}): ConnectionCapsOptions {
  if (options.plaintext !== 'behind-proxy' || caps.isExempt) return caps
  return { ...caps, isExempt: () => true }
}

function listen(server: Server, options: ListenerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) => reject(listenError(error, options))
    server.once('error', onError)
    server.listen({ host: options.host, port: options.port, backlog: BACKLOG }, () => {
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
    fix: 'Give an address that this machine has; 0.0.0.0 or :: stands for all of them.',
  })
}

/** Resolves once the port is free; unlike `close` alone it does not wait for open connections. */
function stopListening(server: Server): Promise<void> {
  if (server.listening) server.close()
  return Promise.resolve()
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    if (!server.listening) resolve()
    else server.close(() => resolve())
  })
}

function ignore(): void {}
