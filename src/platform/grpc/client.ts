import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Clock } from '../../core/clock.ts'
import { HEARTBEAT_DEFAULTS, type HeartbeatOptions, startHeartbeat } from '../net/heartbeat.ts'
import { hostHeader, type PinnedAddress } from '../net/pinned-address.ts'
import { createHttp2Tap, type Http2Tap, type OpenSocket } from './http2-tap.ts'
import { type GrpcStream, openGrpcStream } from './stream.ts'

export type GrpcClientOptions = {
  /** Sent with every call. May contain a credential, so it is never logged. */
  readonly metadata?: Readonly<Record<string, string>>
  readonly connectTimeoutMs?: number
  readonly heartbeat?: HeartbeatOptions
  /** Flow-control windows: of a call, and of all calls of the connection. */
  readonly streamWindowBytes?: number
  readonly sessionWindowBytes?: number
  /** Calls of the connection, which then takes no more, as after GOAWAY. */
  readonly callsMax?: number
  /** Certificates to trust instead of the system's. */
  readonly ca?: string | undefined
}

export type GrpcClientDeps = { readonly clock: Clock; readonly address: PinnedAddress }

export type GrpcLoss = {
  readonly cause: 'address' | 'connect' | 'closed' | 'dead' | 'protocol'
  readonly message: string
}

/** One HTTP/2 connection to a gRPC server, for many calls at once. */
export type GrpcSession = Disposable & {
  /** Accepts a new call: the session is open, the server has sent no GOAWAY, and its stream limit allows one more. */
  readonly isUsable: boolean
  /** Accepts no new call ever, because the server has sent GOAWAY or its ids are used up; its open calls continue. */
  readonly isDraining: boolean
  readonly openStreams: number
  /** A bidirectional call as bytes; the path is for example `/geyser.Geyser/Subscribe`. */
  open(path: string, metadata: Readonly<Record<string, string>>): GrpcStream
  /** Called exactly once, after the open calls have ended. */
  onClose(listener: (loss: GrpcLoss) => void): void
}

export type GrpcOpening =
  | { readonly ok: true; readonly session: GrpcSession }
  | { readonly ok: false; readonly loss: GrpcLoss }

const MIB = 1024 * 1024
/** With the default windows of HTTP/2 a fast stream waits for every round trip. */
const DEFAULTS = {
  connectTimeoutMs: 5000,
  heartbeat: HEARTBEAT_DEFAULTS,
  streamWindowBytes: 4 * MIB,
  sessionWindowBytes: 16 * MIB,
  /** Each call takes one of the odd ids below 2^31 (RFC 9113 section 5.1.1). */
  callsMax: 2 ** 30 - 1,
}
const SESSION_MEMORY_MIB_MAX = 64
/** Where the server announces no limit. */
const STREAMS_MAX = 1000

/** Never rejects: an unreachable server is an outcome. Resolves when the server's HTTP/2 settings have come. */
export async function openGrpcSession(given: GrpcClientOptions, deps: GrpcClientDeps): Promise<GrpcOpening> {
  const options = { ...DEFAULTS, ...given }
  const { clock, address } = deps
  const target = await address.current()
  if (!target.ok) return { ok: false, loss: { cause: 'address', message: target.message } }
  const { remote } = address
  const tap = createHttp2Tap((onread) => openSocket({ ip: target.ip, onread }, deps, options.ca), options)
  const session = connectHttp2(`${remote.secure ? 'https' : 'http'}://${hostHeader(remote)}`, {
    createConnection: () => tap.connection,
    maxSessionMemory: SESSION_MEMORY_MIB_MAX,
    settings: { enablePush: false, initialWindowSize: options.streamWindowBytes },
  })
  return new Promise((resolve) => {
    let isSettled = false
    const settle = (opening: GrpcOpening) => {
      if (isSettled) return
      isSettled = true
      timeout.cancel()
      if (!opening.ok) {
        address.lost('unreachable')
        session.destroy()
      }
      resolve(opening)
    }
    const fail = (message: string) => settle({ ok: false, loss: { cause: 'connect', message } })
    const timeout = clock.setTimer(options.connectTimeoutMs, () => fail('no response in time'))
    session.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? 'connection failed'))
    session.on('close', () => fail('connection closed'))
    session.once('remoteSettings', () => {
      if (isSettled) return
      session.setLocalWindowSize(options.sessionWindowBytes)
      settle({ ok: true, session: wrap(session, tap, options, deps) })
    })
  })
}

function wrap(
  session: ClientHttp2Session,
  tap: Http2Tap,
  options: typeof DEFAULTS & GrpcClientOptions,
  { clock, address }: GrpcClientDeps,
): GrpcSession {
  const closeListeners: ((loss: GrpcLoss) => void)[] = []
  let openStreams = 0
  let calls = 0
  let loss: GrpcLoss | undefined
  const heartbeat = startHeartbeat(options.heartbeat, {
    clock,
    ping: () => {
      if (session.destroyed) return
      session.ping((error) => {
        if (error === null) heartbeat.heard()
      })
    },
    onDead: () => leave({ cause: 'dead', message: 'no reply to pings' }),
  })

  function leave(reason: GrpcLoss): void {
    if (loss !== undefined) return
    loss = reason
    heartbeat[Symbol.dispose]()
    address.lost('broken')
    session.destroy()
  }

  session.on('error', (error: NodeJS.ErrnoException) => leave({ cause: 'protocol', message: error.code ?? 'failed' }))
  // The runtime closes the streams of a session before the session.
  session.on('close', () => {
    leave({ cause: 'closed', message: 'connection closed' })
    for (const listener of closeListeners.splice(0)) listener(loss as GrpcLoss)
  })

  const isUsedUp = () => calls >= options.callsMax
  const isUsable = () => loss === undefined && !session.closed && !session.destroyed
  return {
    get isUsable() {
      const allowed = session.remoteSettings.maxConcurrentStreams ?? STREAMS_MAX
      return isUsable() && !isUsedUp() && openStreams < Math.min(allowed, STREAMS_MAX)
    },
    get isDraining() {
      return session.closed || isUsedUp()
    },
    get openStreams() {
      return openStreams
    },
    open(path, metadata) {
      openStreams += 1
      const headers = {
        ':method': 'POST',
        ':path': path,
        'content-type': 'application/grpc',
        te: 'trailers',
        ...metadata,
        ...options.metadata,
      }
      const stream = openGrpcStream(isUsable() ? { session, tap } : undefined, headers)
      calls += 1
      stream.onEnd(() => {
        openStreams -= 1
        if (isUsedUp() && openStreams === 0) session.close()
      })
      return stream
    },
    onClose(listener) {
      if (session.destroyed && loss !== undefined) listener(loss)
      else closeListeners.push(listener)
    },
    [Symbol.dispose]: () => leave({ cause: 'closed', message: 'closed from this side' }),
  }
}

function openSocket(
  { ip, onread }: { ip: string; onread: Parameters<OpenSocket>[0] },
  { address: { remote } }: GrpcClientDeps,
  ca: string | undefined,
): Socket {
  const options = { host: ip, port: remote.port, noDelay: true, keepAlive: true, onread }
  if (!remote.secure) return connect(options)
  return connectTls({
    ...options,
    ...(isIP(remote.host) === 0 ? { servername: remote.host } : {}),
    ...(ca === undefined ? {} : { ca }),
    ALPNProtocols: ['h2'],
    minVersion: 'TLSv1.2',
  })
}
