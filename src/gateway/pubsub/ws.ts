import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Caller, Refused } from '../../access/authorize.ts'
import { CREDENTIAL_SOURCES, collectToken } from '../../access/credentials.ts'
import type { Permit } from '../../access/quota/permits.ts'
import type { Access } from '../../access/service.ts'
import { versionHeaders } from '../../contract/versions.ts'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { splitTarget } from '../../platform/http/request-headers.ts'
import type { ResponseBudget } from '../../platform/http/response-budget.ts'
import { sendRaw, sendText } from '../../platform/http/server/reply.ts'
import { requestIdOf } from '../../platform/http/server/request-id.ts'
import { startHttpServer } from '../../platform/http/server/server.ts'
import type { ListenerOptions } from '../../platform/net/listener.ts'
import type { ListenerMetrics } from '../../platform/net/listener-metrics.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { WsCloseCode } from '../../platform/ws/connection.ts'
import { createWsServer, type WsRefusal } from '../../platform/ws/server.ts'
import type { Upstreams } from '../../upstreams/service.ts'
import type { Connections } from '../account/connections.ts'
import type { AuthTarpit, Peer } from '../auth-tarpit.ts'
import type { BundleMetrics } from '../metrics.ts'
import { type Refusal, refusePermit, refuseToken, refuseUpstream } from '../refusal.ts'
import type { Forward } from '../rpc/forward.ts'
import { refuse } from '../rpc/http-response.ts'
import { serveWsClient, type WsClient } from './client.ts'
import { createUpstreamSubscriptions } from './upstream-subscriptions.ts'

export type WsServerOptions = {
  readonly listen: ListenerOptions
  /** Accepts the token itself in the query of the address. */
  readonly queryToken?: boolean
  readonly connectionsMax?: number
  readonly pendingBytesMax?: number
  readonly stallMs?: number
  readonly pingMs?: number
}

export type WsServerDeps = ListenerMetrics & {
  readonly access: Access
  readonly upstreams: Upstreams
  readonly forward: Forward
  readonly budget: ResponseBudget
  readonly connections: Connections
  readonly tarpit: AuthTarpit
  readonly metrics: Pick<BundleMetrics, 'ws' | 'gapsReported'>
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
}

export type WsServer = AsyncDisposable & {
  readonly address: { readonly host: string; readonly port: number }
  readonly connections: number
  /** Subscriptions at nodes, each shared by any number of clients. */
  readonly upstreamSubscriptions: number
  beginLameDuck(): void
  /** Closes every connection with 1012, so that clients reconnect, and closes the port. */
  drain(deadlineMs: number): Promise<void>
}

/** The limit of a node, for one frame and for one message. */
const MESSAGE_BYTES_MAX = 4096
/** How often tokens are checked for expiry; a change of the store is seen at once. */
const RENEW_MS = 2000
/** Connections are closed over this time at a shutdown (robustness.md, fault F11). */
const SPREAD_MS = 5000

type Admitted = {
  readonly caller: Caller
  readonly permit: Permit
  readonly requestId: string
  readonly query: string
  readonly remoteAddress: string
}

/** The PubSub server: token or ticket at the handshake, then JSON-RPC with subscriptions. */
export async function startWsServer(options: WsServerOptions, deps: WsServerDeps): Promise<WsServer> {
  const { access, upstreams, forward, budget, connections, tarpit, clock } = deps
  const { ws: meter, gapsReported } = deps.metrics
  const log = deps.log.child({ part: 'bundle-ws' })
  const shared = createUpstreamSubscriptions(deps)
  /** With whether the subscription had dedicated nodes when the client connected. */
  const clients = new Map<WsClient, boolean>()
  const credentialSources = options.queryToken === true ? CREDENTIAL_SOURCES.wsWithQuery : CREDENTIAL_SOURCES.ws
  const admitted = new WeakMap<IncomingMessage, Admitted>()
  let isDraining = false

  function hasDedicatedNodes(subscriptionId: string): boolean {
    return upstreams.of(subscriptionId) !== upstreams.of(undefined)
  }

  function authenticate(headers: readonly string[], query: string): Caller | Refused {
    const nowMs = clock.nowMs()
    const presented = collectToken(credentialSources, headers, query)
    const [ticket, ...more] = valuesOf(query, 'ticket')
    if (ticket === undefined) return access.authenticate(presented, 'bundle', nowMs)
    if (more.length > 0) return access.authenticate({ refused: 'conflicting' }, 'bundle', nowMs)
    const byTicket = access.authenticateTicket(ticket, 'bundle', nowMs)
    if ('refused' in presented && presented.refused === 'missing') return byTicket
    const byToken = access.authenticate(presented, 'bundle', nowMs)
    if (byTicket.ok && byToken.ok && byTicket.tokenSha256 === byToken.tokenSha256) return byToken
    return access.authenticate({ refused: 'conflicting' }, 'bundle', nowMs)
  }

  /** Authenticates the handshake and takes a permit; returns the caller or the refusal. */
  function admit(request: IncomingMessage, peer: Peer, requestId: string): Caller | Refusal | Refused {
    if (isDraining) return refuseUpstream('draining')
    const { query } = splitTarget(request.url)
    const caller = authenticate(request.rawHeaders, query)
    if (!caller.ok) return caller
    const permit = access.permits.acquire(caller.subscription.id, 'wsConnections', caller.limits)
    if (!permit.ok) {
      meter.refused(permit.limitName)
      return refusePermit(permit)
    }
    admitted.set(request, { caller, permit, requestId, query, remoteAddress: tarpit.addressOf(peer) })
    return caller
  }

  await using opening = new AsyncDisposableStack()
  const ws = createWsServer(
    {
      messageBytesMax: MESSAGE_BYTES_MAX,
      ...pick(options, ['connectionsMax', 'pendingBytesMax', 'stallMs', 'pingMs']),
    },
    {
      clock,
      headersFor: versionHeaders,
      meter: {
        written(messages, bytes) {
          meter.messagesOut.inc(messages)
          meter.bytesOut.inc(bytes)
        },
        slow: () => meter.slow.inc(),
        pings: () => meter.refused('controlPings'),
      },
      onConnection(connection, request) {
        const { caller, permit, requestId, query, remoteAddress } = admitted.get(request) as Admitted
        admitted.delete(request)
        const wantsGaps = valuesOf(query, 'gaps')[0] === '1'
        const client = serveWsClient(
          connection,
          { caller, wantsGaps, requestId },
          { access, upstreamSubscriptions: shared, forward, budget, clock, log, meter, gapsReported },
        )
        clients.set(client, hasDedicatedNodes(caller.subscription.id))
        meter.open.inc()
        const leave = connections.enter({
          subscriptionId: caller.subscription.id,
          interface: 'ws',
          remoteAddress,
          subscriptions: () => client.subscriptions,
          bytesOut: () => connection.bytesOut,
          // Solana clients do not reconnect after 1000, which is what the owner wants here.
          close: () => connection.close(WsCloseCode.normal, 'closed by the owner of the subscription'),
        })
        connection.onClose((code, message) => {
          clients.delete(client)
          permit.release()
          meter.open.dec()
          leave({ code, message })
        })
      },
    },
  )

  function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const requestId = requestIdOf(request, deps)
    const peer = { remoteAddress: request.socket.remoteAddress ?? '', headers: request.rawHeaders }
    const refuseWith = (refusal: Refusal) => {
      const { status, body, headers } = asHandshake(refusal, requestId)
      sendRaw(socket, status, body, { ...versionHeaders?.(request.url ?? '/'), ...headers })
    }
    const outcome = admit(request, peer, requestId)
    if ('code' in outcome) return refuseWith(outcome)
    if (!outcome.ok) {
      // A refused handshake closes its connection in any case.
      socket.on('error', () => socket.destroy())
      return tarpit.refuse(peer, meter.late, () => refuseWith(refuseToken(outcome.reason)))
    }
    ws.upgrade(request, socket, head)
    // Still there where the handshake was invalid: release its permit.
    admitted.get(request)?.permit.release()
    admitted.delete(request)
  }

  /** Renews each token once, however many connections it has. */
  function renewAll(): void {
    const known = new Map<string, Caller | Refused>()
    for (const [client, hadDedicatedNodes] of [...clients]) {
      const { tokenSha256 } = client
      const caller = known.get(tokenSha256) ?? access.renew(tokenSha256, 'bundle', clock.nowMs())
      known.set(tokenSha256, caller)
      client.renew(caller)
      // In the other direction no move is needed: losing the dedicated nodes moves its subscriptions to the shared ones.
      if (!hadDedicatedNodes && hasDedicatedNodes(client.subscriptionId)) client.move()
    }
  }

  opening.use(access.onChange(renewAll))
  const renewing = opening.use(clock.setRepeating(RENEW_MS, renewAll))
  renewing.unref?.()
  const http = opening.use(
    await startHttpServer(
      { listen: options.listen },
      {
        log,
        clock,
        headersFor: versionHeaders,
        onRefused: deps.onRefused,
        onNotAfter: deps.onNotAfter,
        onRequest: (_, response) => sendText(response, 426, 'WebSocket only\n', { upgrade: 'websocket' }),
        onUpgrade: upgrade,
      },
    ),
  )
  opening.use(ws)
  const opened = opening.move()

  return {
    address: http.address,
    get connections() {
      return ws.connections()
    },
    get upstreamSubscriptions() {
      return shared.size
    },
    beginLameDuck: () => http.beginLameDuck(),
    async drain(deadlineMs) {
      isDraining = true
      const endMs = clock.monotonicMs() + deadlineMs
      await ws.drain(deadlineMs, Math.min(SPREAD_MS, deadlineMs / 2))
      await http.drain(Math.max(0, endMs - clock.monotonicMs()))
      await opened.disposeAsync()
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** The same body and headers as a refusal over RPC, in place of the upgrade. */
function asHandshake(refusal: Refusal, requestId: string): WsRefusal & { headers: Record<string, string> } {
  const { status, headers, body } = refuse(refusal, { requestId })
  return { status, headers: { ...headers, 'x-request-id': requestId }, body: String(body) }
}

/** Every value of a name in the query. A value that cannot be decoded stays as it is, and is then no valid ticket. */
function valuesOf(query: string, name: string): string[] {
  return query
    .split('&')
    .filter((part) => part === name || part.startsWith(`${name}=`))
    .map((part) => decode(part.slice(name.length + 1)))
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function pick<Options extends object, Name extends keyof Options>(
  options: Options,
  names: readonly Name[],
): { [Key in Name]?: Exclude<Options[Key], undefined> } {
  return Object.fromEntries(
    names.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]),
  ) as { [Key in Name]?: Exclude<Options[Key], undefined> }
}
