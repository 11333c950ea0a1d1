import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { STREAM_CLOSE } from '../../contract/stream-events.ts'
import { versionHeaders } from '../../contract/versions.ts'
import { sendRaw } from '../../platform/http/server/reply.ts'
import { requestIdOf } from '../../platform/http/server/request-id.ts'
import { createSlicedChecks } from '../../platform/process/sliced-checks.ts'
import type { WsConnection } from '../../platform/ws/connection.ts'
import { createWsServer } from '../../platform/ws/server.ts'
import { requestTarget } from '../api/request-target.ts'
import { meterOf } from '../api/work-budget.ts'
import type { ExecutionMetrics, WsCloseReason } from '../metrics.ts'
import {
  createHandshakeAdmission,
  type HandshakeAdmissionDeps,
  type HandshakeAdmissionOptions,
} from './handshake-admission.ts'
import type { StreamHub } from './hub.ts'
import { type JoinOptions, StreamSession } from './session.ts'
import { parseSubscribeQuery, type SubscriptionRules } from './subscription.ts'

export type WsServerOptions = HandshakeAdmissionOptions & {
  readonly connectionsMax: number
  readonly pingMs: number
  readonly pingsMissedMax: number
  /** Whether permessage-deflate is accepted. */
  readonly isDeflateOffered: boolean
}

export type WsServerDeps = HandshakeAdmissionDeps & {
  readonly hub: StreamHub
  readonly rules: SubscriptionRules
  readonly metrics: ExecutionMetrics
}

export type WsServer = AsyncDisposable & {
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  readonly connections: number
  readonly waitingFrames: number
  /** Closes every connection with 1012, one after another, so that clients reconnect with their cursor and not all at once. */
  drain(deadlineMs: number): Promise<void>
}

/** Far above a subscription with all its filters. */
const MESSAGE_BYTES_MAX = 64 * 1024
/** How often tokens are checked for expiry; a change of the store is applied at once. */
const RENEW_MS = 2000
const NEVER_MS = 2 ** 31 - 1
/** Over this time clients leave at a drain, at most half of its deadline. */
const SPREAD_MS = 5000

type Client = { readonly session: StreamSession; endedBy: WsCloseReason }

/** The WebSocket endpoint: turns a handshake into a session of the hub. */
export function createWsEndpoint(options: WsServerOptions, deps: WsServerDeps): WsServer {
  const { hub, clock, access, metrics } = deps
  const admission = createHandshakeAdmission(options, deps)
  const clients = new Map<WsConnection, Client>()
  const byToken = new Map<string, Set<WsConnection>>()
  const closing = new DisposableStack()

  function serve(connection: WsConnection, request: IncomingMessage): void {
    const admitted = admission.open(request)
    const socket = {
      get isClear() {
        return connection.isClear
      },
      isDeflating: connection.isDeflating,
      write: (bytes: Buffer) => connection.write(bytes),
      close(code: number, message: string, cause: WsCloseReason) {
        end(connection, cause)
        connection.close(code, message)
      },
    }
    const meter = meterOf(deps.budget, admitted.owner)
    const session = new StreamSession(hub, socket, { ...joinOptions(requestTarget(request).query, deps.rules), meter })
    const { tokenSha256 } = admitted
    clients.set(connection, { session, endedBy: 'client' })
    if (tokenSha256 !== undefined)
      byToken.set(tokenSha256, (byToken.get(tokenSha256) ?? new Set<WsConnection>()).add(connection))
    connection.onDrain(() => session.drained())
    connection.onMessage((text) => session.message(text))
    connection.onClose(() => {
      metrics.closed.inc({ reason: clients.get(connection)?.endedBy ?? 'client' })
      clients.delete(connection)
      if (tokenSha256 !== undefined) forget(connection, tokenSha256)
      session.left()
      admission.leave(admitted)
    })
  }

  function forget(connection: WsConnection, tokenSha256: string): void {
    const own = byToken.get(tokenSha256)
    own?.delete(connection)
    if (own?.size === 0) byToken.delete(tokenSha256)
  }

  /** Records why the connection ends; the first reason counts. */
  function end(connection: WsConnection, reason: WsCloseReason): void {
    const client = clients.get(connection)
    if (client?.endedBy === 'client') client.endedBy = reason
  }

  const server = createWsServer(
    {
      messageBytesMax: MESSAGE_BYTES_MAX,
      connectionsMax: options.connectionsMax,
      pingMs: options.pingMs,
      missesMax: options.pingsMissedMax,
      isDeflateOffered: options.isDeflateOffered,
      // The hub limits slow clients itself.
      stallMs: NEVER_MS,
    },
    {
      clock,
      admit: admission.admit,
      headersFor: versionHeaders,
      onConnection: serve,
      onDead: (connection) => end(connection, 'heartbeat'),
    },
  )

  if (access !== undefined) {
    // Each token once, however many connections it has.
    const checks = closing.use(
      createSlicedChecks((tokenSha256: string) => {
        const own = byToken.get(tokenSha256)
        if (own === undefined || access.renew(tokenSha256, 'execution', clock.nowMs()).ok) return
        for (const connection of [...own]) {
          end(connection, 'token')
          connection.close(STREAM_CLOSE.unauthorized, 'the token is no longer valid')
        }
      }),
    )
    const renewAll = () => checks.check(byToken.keys())
    closing.use(access.onChange(renewAll))
    const renewing = closing.use(clock.setRepeating(RENEW_MS, renewAll))
    renewing.unref?.()
  }

  return {
    upgrade(request, socket, head) {
      if (server.connections() >= options.connectionsMax) {
        metrics.refused.inc({ reason: 'connections' })
        const error = `limit reached: ${options.connectionsMax} connections`
        const requestId = requestIdOf(request, deps)
        deps.refusals?.record({ requestId, interface: 'execution', status: 503, message: error })
        const headers = { ...versionHeaders?.(request.url ?? '/'), 'x-request-id': requestId, 'retry-after': '5' }
        return sendRaw(socket, 503, JSON.stringify({ error }), headers)
      }
      server.upgrade(request, socket, head)
      admission.settle(request)
    },
    get connections() {
      return server.connections()
    },
    get waitingFrames() {
      let frames = 0
      for (const { session } of clients.values()) frames += session.waitingFrames
      return frames
    },
    drain(deadlineMs) {
      for (const connection of clients.keys()) end(connection, 'restart')
      return server.drain(deadlineMs, Math.min(SPREAD_MS, deadlineMs / 2))
    },
    async [Symbol.asyncDispose]() {
      closing.dispose()
      await server[Symbol.asyncDispose]()
    },
  }
}

/** Reads the query parameters. A repeated parameter is joined, so that it is refused as invalid. */
function joinOptions(query: URLSearchParams, rules: SubscriptionRules): JoinOptions {
  const subscribes = query.getAll('subscribe')
  const cursors = query.getAll('resume_from')
  const [subscribe] = subscribes
  return {
    ...(subscribe === undefined
      ? {}
      : { subscribe: parseSubscribeQuery(subscribes.length === 1 ? subscribe : subscribes.join(','), rules) }),
    ...(cursors.length === 0 ? {} : { resumeFrom: cursors.join(',') }),
  }
}
