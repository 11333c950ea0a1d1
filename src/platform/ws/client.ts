import { isIP } from 'node:net'
import { WebSocket } from 'ws'
import type { Clock } from '../../core/clock.ts'
import { HEARTBEAT_DEFAULTS, type HeartbeatOptions, startHeartbeat } from '../net/heartbeat.ts'
import { hostHeader, type PinnedAddress } from '../net/pinned-address.ts'

export type WsClientOptions = {
  /** Sent with the handshake. May hold a credential, so it is never printed. */
  readonly headers?: Readonly<Record<string, string>>
  readonly handshakeTimeoutMs?: number
  readonly messageBytesMax?: number
  /** More than this that the server does not take ends the connection. */
  readonly pendingBytesMax?: number
  readonly heartbeat?: HeartbeatOptions
  /** Certificates to trust instead of the system's. */
  readonly ca?: string | undefined
}

export type WsClientDeps = { readonly clock: Clock; readonly address: PinnedAddress }

/** Why a connection could not be made or is gone. `status` is the answer of a server that refused the handshake. */
export type WsLoss = {
  readonly cause: 'address' | 'connect' | 'refused' | 'closed' | 'dead' | 'too-slow' | 'protocol'
  readonly message: string
  readonly status?: number
}

/** A connection to a WebSocket server that stands, until `onClose` is told otherwise. */
export type WsClient = {
  readonly isOpen: boolean
  send(text: string): void
  onMessage(listener: (message: Buffer) => void): void
  /** Called exactly once, also after `close`. */
  onClose(listener: (loss: WsLoss) => void): void
  /** Ends the connection from this side. */
  close(): void
}

export type WsOpening = { readonly ok: true; readonly client: WsClient } | { readonly ok: false; readonly loss: WsLoss }

const DEFAULTS = {
  handshakeTimeoutMs: 5000,
  messageBytesMax: 64 * 1024 * 1024,
  pendingBytesMax: 4 * 1024 * 1024,
  heartbeat: HEARTBEAT_DEFAULTS,
}
const CLOSE_GRACE_MS = 1000

/** Never rejects: a server that is not there is an outcome. Redirects are refusals. */
export async function openWsClient(given: WsClientOptions, { clock, address }: WsClientDeps): Promise<WsOpening> {
  const options = { ...DEFAULTS, ...given }
  const position = await address.current()
  if (!position.ok) return { ok: false, loss: { cause: 'address', message: position.message } }
  const { remote } = address
  const ws = new WebSocket(`${remote.secure ? 'wss' : 'ws'}://${hostHeader(remote)}${remote.path}`, {
    headers: { ...options.headers },
    followRedirects: false,
    perMessageDeflate: false,
    maxPayload: options.messageBytesMax,
    // The name was looked up and judged already; the library gets what came of it.
    lookup: (_host, { all }, found) => {
      const entry = { address: position.ip, family: isIP(position.ip) }
      if (all === true) found(null, [entry])
      else found(null, entry.address, entry.family)
    },
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  })
  return new Promise((resolve) => {
    let loss: WsLoss | undefined
    const timeout = clock.setTimer(options.handshakeTimeoutMs, () =>
      fail({ cause: 'connect', message: 'no answer in time' }),
    )
    function fail(why: WsLoss): void {
      if (loss !== undefined) return
      loss = why
      timeout.cancel()
      address.lost('unreachable')
      ws.terminate()
      resolve({ ok: false, loss: why })
    }
    ws.on('error', (error: NodeJS.ErrnoException) =>
      fail({ cause: 'connect', message: error.code ?? 'connection failed' }),
    )
    ws.on('unexpected-response', (_request, response) => {
      const status = response.statusCode ?? 0
      fail({ cause: 'refused', message: `the handshake was answered with ${status}`, status })
    })
    ws.on('open', () => {
      if (loss !== undefined) return
      timeout.cancel()
      ws.removeAllListeners('error')
      ws.removeAllListeners('unexpected-response')
      resolve({ ok: true, client: wrap(ws, options, { clock, address }) })
    })
  })
}

function wrap(ws: WebSocket, options: typeof DEFAULTS & WsClientOptions, { clock, address }: WsClientDeps): WsClient {
  let loss: WsLoss | undefined
  const closeListeners: ((loss: WsLoss) => void)[] = []
  const heartbeat = startHeartbeat(options.heartbeat, {
    clock,
    ping: () => {
      if (ws.readyState === ws.OPEN) ws.ping()
    },
    onDead: () => leave({ cause: 'dead', message: 'pings are not answered' }),
  })

  /** The listeners are told at once: a peer that is gone would delay the close by its handshake. */
  function leave(why: WsLoss): void {
    if (loss !== undefined) return
    loss = why
    heartbeat[Symbol.dispose]()
    address.lost('broken')
    if (why.cause === 'closed' && ws.readyState === ws.OPEN) {
      ws.close(1000)
      clock.setTimer(CLOSE_GRACE_MS, () => ws.terminate()).unref?.()
    } else ws.terminate()
    for (const listener of closeListeners.splice(0)) listener(why)
  }

  ws.on('pong', () => heartbeat.heard())
  ws.on('ping', () => heartbeat.heard())
  ws.on('error', (error: NodeJS.ErrnoException) =>
    leave({ cause: 'protocol', message: error.code ?? 'connection failed' }),
  )
  ws.on('close', (code: number) => leave({ cause: 'closed', message: `closed with ${code}` }))

  return {
    get isOpen() {
      return loss === undefined && ws.readyState === ws.OPEN
    },
    send(text) {
      if (loss !== undefined || ws.readyState !== ws.OPEN) return
      ws.send(text)
      if (ws.bufferedAmount > options.pendingBytesMax) leave({ cause: 'too-slow', message: 'the server does not read' })
    },
    onMessage(listener) {
      ws.on('message', (data) => {
        heartbeat.heard()
        if (loss === undefined) listener(data as Buffer)
      })
    },
    onClose(listener) {
      if (loss === undefined) closeListeners.push(listener)
      else listener(loss)
    },
    close: () => leave({ cause: 'closed', message: 'closed from this side' }),
  }
}
