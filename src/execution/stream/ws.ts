import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { STREAM_CLOSE, STREAM_PATHS } from '../../contract/stream-events.ts'
import { versionHeaders } from '../../contract/versions.ts'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { sendRaw } from '../../platform/http/server/reply.ts'
import { requestIdOf } from '../../platform/http/server/request-id.ts'
import { createConnectionCaps } from '../../platform/net/connection-caps.ts'
import type { RefusalRecorder } from '../../platform/telemetry/refusal-log.ts'
import type { WsConnection } from '../../platform/ws/connection.ts'
import { createWsServer, type WsRefusal } from '../../platform/ws/server.ts'
import { authenticate, type Policy, UNAUTHORIZED_HEADERS, unauthorizedBody } from '../api/authorize.ts'
import { requestTarget } from '../api/request-target.ts'
import { meterOf, ownerOf, PRICE, type WorkBudget, type WorkOwner } from '../api/work-budget.ts'
import type { ExecutionMetrics, WsCloseReason } from '../metrics.ts'
import { workLimitReached } from '../rpc/failure.ts'
import { retryAfter } from '../rpc/post.ts'
import type { StreamHub } from './hub.ts'
import { type JoinOptions, StreamSession } from './session.ts'
import { parseSubscribeQuery, type SubscriptionRules } from './subscription.ts'

export type WsServerOptions = {
  readonly connectionsMax: number
  readonly connectionsPerAddress: number
  readonly pingMs: number
  readonly pingsMissedMax: number
  /** Whether permessage-deflate is accepted. */
  readonly isDeflateOffered: boolean
  /** Whether loopback addresses are limited too; false by default. */
  readonly countsLoopback?: boolean
}

export type WsServerDeps = Policy & {
  readonly hub: StreamHub
  readonly rules: SubscriptionRules
  readonly clock: Clock
  readonly clientAddress: (request: IncomingMessage) => string
  readonly metrics: ExecutionMetrics
  readonly budget: WorkBudget
  readonly random: Random
  readonly refusals?: RefusalRecorder | undefined
}

export type WsServer = AsyncDisposable & {
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  readonly connections: number
  readonly waitingFrames: number
  /** Closes every connection with 1012, so that clients reconnect with their cursor. */
  drain(deadlineMs: number): Promise<void>
}

/** Far above a subscription with all its filters. */
const MESSAGE_BYTES_MAX = 64 * 1024
/** How often tokens are checked for expiry; a change of the store is applied at once. */
const RENEW_MS = 2000
const NEVER_MS = 2 ** 31 - 1
const NO_LIMIT = Number.MAX_SAFE_INTEGER

type Admitted = { address: string; owner: WorkOwner; tokenSha256: string | undefined; isOpened: boolean }
type Client = { session: StreamSession; tokenSha256: string | undefined; endedBy: WsCloseReason }

/** The WebSocket endpoint: turns a handshake into a session of the hub. */
export function createWsEndpoint(options: WsServerOptions, deps: WsServerDeps): WsServer {
  const { hub, clock, access, metrics } = deps
  const caps = createConnectionCaps(
    {
      connectionsMax: NO_LIMIT,
      perAddressMax: options.connectionsPerAddress,
      perAddressPerSecond: 1_000_000,
      ...(options.countsLoopback === true ? { isExempt: () => false } : {}),
    },
    clock,
  )
  const admitted = new WeakMap<IncomingMessage, Admitted>()
  const clients = new Map<WsConnection, Client>()
  const closing = new DisposableStack()

  function admit(request: IncomingMessage): WsRefusal | undefined {
    const { path, query } = requestTarget(request)
    if (!(STREAM_PATHS as readonly string[]).includes(path)) {
      metrics.refused.inc({ reason: 'path' })
      return { status: 404, body: JSON.stringify(NO_STREAM) }
    }
    const caller = authenticate(deps, request, query.getAll('ticket'))
    if (caller?.ok === false) {
      metrics.refused.inc({ reason: 'token' })
      const body = JSON.stringify(unauthorizedBody('executionWs', caller, request, deps.docsUrl))
      return { status: 401, body, headers: UNAUTHORIZED_HEADERS }
    }
    const address = deps.clientAddress(request)
    const owner = ownerOf(address, caller?.subscription.id)
    const taken = deps.budget.take(owner, PRICE.call)
    if (!taken.ok) {
      metrics.refused.inc({ reason: 'work' })
      metrics.limits.inc({ limit: 'unitsPerSecond' })
      return overBudget(deps.budget, taken.retryAfterMs)
    }
    if (caps.enter(address) !== undefined) {
      metrics.refused.inc({ reason: 'address_limit' })
      const limit = options.connectionsPerAddress
      const body = JSON.stringify({ error: `limit reached: ${limit} connections of one address`, limit })
      return { status: 429, body, headers: { 'retry-after': '5' } }
    }
    admitted.set(request, { address, owner, tokenSha256: caller?.tokenSha256, isOpened: false })
    return undefined
  }

  /** A refused handshake has an id, under which it is recorded. */
  function identify(request: IncomingMessage, refusal: WsRefusal | undefined): WsRefusal | undefined {
    if (refusal === undefined) return undefined
    const requestId = requestIdOf(request, deps)
    const { status, body: message, headers } = refusal
    deps.refusals?.note({ requestId, interface: 'execution', status, message })
    return { ...refusal, headers: { ...headers, 'x-request-id': requestId } }
  }

  function serve(connection: WsConnection, request: IncomingMessage): void {
    const entry = admitted.get(request) as Admitted
    entry.isOpened = true
    const { address, owner, tokenSha256 } = entry
    const socket = {
      get isClear() {
        return connection.isClear
      },
      isDeflating: connection.isDeflating,
      write: (bytes: Buffer) => connection.write(bytes),
      close(code: number, reason: string) {
        end(connection, reason.startsWith('too slow') ? 'slow' : 'policy')
        connection.close(code, reason)
      },
    }
    const meter = meterOf(deps.budget, owner)
    const session = new StreamSession(hub, socket, { ...joinOptions(requestTarget(request).query, deps.rules), meter })
    clients.set(connection, { session, tokenSha256, endedBy: 'client' })
    connection.onDrain(() => session.drained())
    connection.onMessage((text) => session.message(text))
    connection.onClose(() => {
      metrics.closed.inc({ reason: clients.get(connection)?.endedBy ?? 'client' })
      clients.delete(connection)
      session.left()
      caps.leave(address)
    })
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
      admit: (request) => identify(request, admit(request)),
      headersFor: versionHeaders,
      onConnection: serve,
      onDead: (connection) => end(connection, 'heartbeat'),
    },
  )

  /** Checks each token once, however many connections it has. */
  function renewAll(): void {
    if (access === undefined) return
    const isValid = new Map<string, boolean>()
    for (const [connection, { tokenSha256 }] of clients) {
      if (tokenSha256 === undefined) continue
      if (!isValid.has(tokenSha256)) isValid.set(tokenSha256, access.renew(tokenSha256, 'execution', clock.nowMs()).ok)
      if (isValid.get(tokenSha256) === true) continue
      end(connection, 'token')
      connection.close(STREAM_CLOSE.unauthorized, 'the token is no longer valid')
    }
  }

  if (access !== undefined) {
    closing.use(access.onChange(renewAll))
    const renewing = closing.use(clock.setRepeating(RENEW_MS, renewAll))
    renewing.unref?.()
  }

  return {
    upgrade(request, socket, head) {
      if (server.connections() >= options.connectionsMax) {
        metrics.refused.inc({ reason: 'connections' })
        const error = `limit reached: ${options.connectionsMax} connections`
        const headers = { ...versionHeaders?.(request.url ?? '/'), 'retry-after': '5' }
        return sendRaw(socket, 503, JSON.stringify({ error }), headers)
      }
      server.upgrade(request, socket, head)
      // A handshake that was admitted but failed releases its connection permit.
      const entry = admitted.get(request)
      if (entry !== undefined && !entry.isOpened) caps.leave(entry.address)
      admitted.delete(request)
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
      return server.drain(deadlineMs)
    },
    async [Symbol.asyncDispose]() {
      closing.dispose()
      await server[Symbol.asyncDispose]()
    },
  }
}

const NO_STREAM = { error: 'not-found', message: 'the stream has another path; paths lists them', paths: STREAM_PATHS }

function overBudget({ unitsPerSecond }: WorkBudget, waitMs: number): WsRefusal {
  const { message, data, retryAfterMs } = workLimitReached(unitsPerSecond, PRICE.call, waitMs)
  return { status: 429, body: JSON.stringify({ error: message, ...data }), headers: retryAfter(retryAfterMs) }
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
