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
  /** The connection ends when the server leaves more than this unread. */
  readonly pendingBytesMax?: number
  readonly heartbeat?: HeartbeatOptions
  /** Certificates to trust instead of the system's. */
  readonly ca?: string | undefined
}

export type WsClientDeps = { readonly clock: Clock; readonly address: PinnedAddress }

/** Why a connection could not be opened or was lost. `status` is that of a server which refused the handshake. */
export type WsLoss = {
  readonly cause: 'address' | 'connect' | 'refused' | 'closed' | 'dead' | 'too-slow' | 'protocol'
  readonly message: string
  readonly status?: number
}

/** An open connection to a WebSocket server, until `onClose` is called. */
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

/** Never rejects: an unreachable server is an outcome. Redirects count as refusals. */
export async function openWsClient(given: WsClientOptions, { clock, address }: WsClientDeps): Promise<WsOpening> {
  const options = { ...DEFAULTS, ...given }
  const target = await address.current()
  if (!target.ok) return { ok: false, loss: { cause: 'address', message: target.message } }
  const { remote } = address
  const ws = new WebSocket(`${remote.secure ? 'wss' : 'ws'}://${hostHeader(remote)}${remote.path}`, {
    headers: { ...options.headers },
    followRedirects: false,
    perMessageDeflate: false,
    maxPayload: options.messageBytesMax,
    // The name is already resolved and checked.
    lookup: (_host, { all }, found) => {
      const entry = { address: target.ip, family: isIP(target.ip) }
      if (all === true) found(null, [entry])
      else found(null, entry.address, entry.family)
    },
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  })
  return new Promise((resolve) => {
    let loss: WsLoss | undefined
    const timeout = clock.setTimer(options.handshakeTimeoutMs, () =>
      fail({ cause: 'connect', message: 'no response in time' }),
    )
    function fail(failure: WsLoss): void {
      if (loss !== undefined) return
      loss = failure
      timeout.cancel()
      address.lost('unreachable')
      ws.terminate()
      resolve({ ok: false, loss: failure })
    }
    ws.on('error', (error: NodeJS.ErrnoException) =>
      fail({ cause: 'connect', message: error.code ?? 'connection failed' }),
    )
    ws.on('unexpected-response', (_request, response) => {
      const status = response.statusCode ?? 0
      fail({ cause: 'refused', message: `the handshake was refused with ${status}`, status })
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
    onDead: () => leave({ cause: 'dead', message: 'no reply to pings' }),
  })

  /** The listeners are called at once: a dead peer would delay the closing handshake. */
  function leave(reason: WsLoss): void {
    if (loss !== undefined) return
    loss = reason
    heartbeat[Symbol.dispose]()
    address.lost('broken')
    if (reason.cause === 'closed' && ws.readyState === ws.OPEN) {
      ws.close(1000)
      clock.setTimer(CLOSE_GRACE_MS, () => ws.terminate()).unref?.()
    } else ws.terminate()
    for (const listener of closeListeners.splice(0)) listener(reason)
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
