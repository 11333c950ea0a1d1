import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import type { Clock } from '../core/clock.ts'
import { sendRaw } from './http-reply.ts'
import { createWsConnection, WsCloseCode, type WsConnection, type WsConnectionOptions } from './ws-connection.ts'

export type WsServerOptions = Partial<WsConnectionOptions> & {
  /** Of one frame and of one message; more closes with 1009. */
  readonly messageBytesMax: number
  readonly connectionsMax?: number
  /** A peer that says nothing for two of these periods is cut. */
  readonly pingMs?: number
}

export type WsRefusal = {
  readonly status: number
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

export type WsServerDeps = {
  readonly clock: Clock
  /** Looks at the handshake; what it gives is answered instead of the upgrade. */
  readonly admit?: (request: IncomingMessage) => WsRefusal | undefined
  readonly onConnection: (connection: WsConnection, request: IncomingMessage) => void
}

export type WsServer = AsyncDisposable & {
  /** For `onUpgrade` of the HTTP server in front. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  connections(): number
  /** Closes every connection with 1012 and waits until they are gone, cutting the rest at the deadline. */
  drain(deadlineMs: number): Promise<void>
}

/** Limits of the reference (robustness.md section 4). */
const DEFAULTS = {
  pendingBytesMax: 4 * 1024 * 1024,
  stallMs: 5000,
  closeGraceMs: 1000,
  connectionsMax: 10_000,
  pingMs: 30_000,
}

/** WebSockets on top of an HTTP server: handshake, limits, heartbeat, one write per socket and turn. */
export function createWsServer(given: WsServerOptions, { clock, admit, onConnection }: WsServerDeps): WsServer {
  const options = { ...DEFAULTS, ...given }
  type Connection = ReturnType<typeof createWsConnection>
  const connections = new Set<Connection>()
  let dirty: Connection[] = []
  let onAllClosed: (() => void) | undefined
  let isDraining = false

  const library = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: options.messageBytesMax,
    autoPong: false,
  })
  const heartbeat = clock.setRepeating(options.pingMs, () => {
    for (const connection of connections) connection.beat()
  })
  heartbeat.unref?.()

  function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const refusal = refuse(request)
    if (refusal) {
      sendRaw(socket, refusal.status, refusal.body, refusal.headers)
      return
    }
    library.handleUpgrade(request, socket, head, (ws) => {
      const connection = createWsConnection(options, {
        ws,
        socket,
        remoteAddress: (socket as Socket).remoteAddress ?? '',
        clock,
        onDirty: () => {
          if (dirty.push(connection) === 1) setImmediate(flushDirty)
        },
      })
      connections.add(connection)
      connection.onClose(() => {
        connections.delete(connection)
        if (connections.size === 0) onAllClosed?.()
      })
      onConnection(connection, request)
    })
  }

  function refuse(request: IncomingMessage): WsRefusal | undefined {
    if (isDraining) return { status: 503, body: 'server is shutting down' }
    if (connections.size >= options.connectionsMax) return { status: 503, body: 'too many connections' }
    return admit?.(request)
  }

  function flushDirty(): void {
    const due = dirty
    dirty = []
    for (const connection of due) connection.flush()
  }

  async function drain(deadlineMs: number): Promise<void> {
    isDraining = true
    heartbeat.cancel()
    const allClosed = new Promise<void>((resolve) => {
      onAllClosed = resolve
    })
    for (const connection of connections) connection.close(WsCloseCode.serviceRestart, 'server is shutting down')
    if (connections.size === 0) return
    const cut = clock.setTimer(deadlineMs, terminateAll)
    await allClosed
    cut.cancel()
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
