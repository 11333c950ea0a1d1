import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Caller, Refused } from '../../access/authorize.ts'
import { CREDENTIAL_SOURCES, collectToken } from '../../access/credentials.ts'
import { explainRefusal } from '../../access/explain-refusal.ts'
import type { Permit } from '../../access/quota/permits.ts'
import type { Access } from '../../access/service.ts'
import type { DocsUrl } from '../../contract/errors.ts'
import type { NodeUser } from '../../contract/products.ts'
import { versionHeaders } from '../../contract/versions.ts'
import { splitTarget } from '../../platform/http/request-headers.ts'
import type { ResponseBudget } from '../../platform/http/response-budget.ts'
import { sendJson, sendRaw } from '../../platform/http/server/reply.ts'
import { requestIdOf } from '../../platform/http/server/request-id.ts'
import { startHttpServer } from '../../platform/http/server/server.ts'
import type { AuthTarpit, Peer } from '../../platform/net/auth-tarpit.ts'
import type { ListenerOptions } from '../../platform/net/listener.ts'
import type { ListenerMetrics } from '../../platform/net/listener-metrics.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import type { RefusalRecorder } from '../../platform/telemetry/refusal-log.ts'
import { WsCloseCode } from '../../platform/ws/close-codes.ts'
import { createWsServer, type WsRefusal } from '../../platform/ws/server.ts'
import type { Upstreams } from '../../upstreams/service.ts'
import type { Connections } from '../account/connections.ts'
import type { BundleMetrics } from '../metrics.ts'
import {
  type RefusableRequest,
  type Refusal,
  recordRefusals,
  refuseNotAssigned,
  refusePermit,
  refuseToken,
  refuseUpstream,
} from '../refusal.ts'
import type { Forward } from '../rpc/forward.ts'
import { refuse } from '../rpc/http-response.ts'
import { serveWsClient, type WsClient } from './client.ts'
import { createUpstreamSubscriptions } from './upstream-subscriptions.ts'

export type WsServerOptions = {
  readonly listen: ListenerOptions
  /** Accepts the token itself in the query of the address. */
  readonly queryToken?: boolean
  /** Gateway threads of the process, which share its bounds; 1 where it is missing. */
  readonly threads?: number | undefined
  readonly connectionsMax?: number
  readonly pendingBytesMax?: number
  readonly stallMs?: number
  readonly pingMs?: number
}

export type WsServerDeps = BaseDeps &
  ListenerMetrics & {
    readonly access: Access
    readonly upstreams: Upstreams
    readonly forward: Forward
    readonly budget: ResponseBudget
    readonly connections: Connections
    readonly tarpit: AuthTarpit
    readonly metrics: Pick<BundleMetrics, 'ws' | 'gapsReported'>
    readonly docsUrl?: DocsUrl | undefined
    readonly refusals?: RefusalRecorder | undefined
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
export const MESSAGE_BYTES_MAX = 4096
/** How often tokens are checked for expiry; a change of the store is seen at once. */
const RENEW_MS = 2000
/** Connections are closed over this time at a shutdown: clients that all come back at once would overload the next process (fault F11). */
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
  const shared = createUpstreamSubscriptions({ ...deps, threads: options.threads })
  /** With whether the subscription had dedicated nodes when the client connected. */
  const clients = new Map<WsClient, boolean>()
  const tokenInterface = options.queryToken === true ? 'wsWithQuery' : 'ws'
  const admitted = new WeakMap<IncomingMessage, Admitted>()
  const onRefused = recordRefusals(deps.refusals, 'ws')
  let isDraining = false

  function hasDedicatedNodes(user: NodeUser): boolean {
    return upstreams.of(user) !== upstreams.of(undefined)
  }

  function authenticate(headers: readonly string[], query: string): Caller | Refused {
    const nowMs = clock.nowMs()
    const presented = collectToken(CREDENTIAL_SOURCES[tokenInterface], headers, query)
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
    if (access.refuseWithoutNode(caller) !== undefined) return refuseNotAssigned()
    const permit = access.permits.acquire(caller.subscription.id, 'wsConnections', caller.limits)
    if (!permit.ok) {
      meter.refused(permit.limitName)
      return refusePermit(permit, caller.subscription.id)
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
          {
            access,
            upstreamSubscriptions: shared,
            forward,
            budget,
            clock,
            log,
            meter,
            gapsReported,
            docsUrl: deps.docsUrl,
            refusals: deps.refusals,
          },
        )
        clients.set(client, hasDedicatedNodes(caller.nodeUser))
        meter.open.inc()
        connection.onSent((bytes) => access.countBytes(caller, 'ws', bytes))
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
      const { status, body, headers } = asHandshake(refusal, { requestId, docsUrl: deps.docsUrl, onRefused })
      sendRaw(socket, status, body, { ...versionHeaders?.(request.url ?? '/'), ...headers })
    }
    const outcome = admit(request, peer, requestId)
    if ('code' in outcome) return refuseWith(outcome)
    if (!outcome.ok) {
      // A refused handshake closes its connection in any case.
      socket.on('error', () => socket.destroy())
      const { query } = splitTarget(request.url)
      const explained = explainRefusal(tokenInterface, outcome, { headers: request.rawHeaders, query })
      return tarpit.refuse(peer, meter.late, () => refuseWith(refuseToken(explained)))
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
      if (!hadDedicatedNodes && hasDedicatedNodes(client.nodeUser)) client.move()
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
        onRequest: (request, response) => {
          const requestId = requestIdOf(request, deps)
          const headers = { 'x-request-id': requestId, upgrade: 'websocket' }
          sendJson(response, 426, { ...WEBSOCKET_ONLY, request_id: requestId }, headers)
        },
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

/** Every path of this listener is the WebSocket. */
const WEBSOCKET_ONLY = {
  error: 'upgrade-required',
  message: 'this address serves WebSockets only; JSON-RPC over HTTP has an address of its own',
}

/** The same body and headers as a refusal over RPC, in place of the upgrade. */
function asHandshake(refusal: Refusal, request: RefusableRequest): WsRefusal & { headers: Record<string, string> } {
  const { status, headers, body } = refuse(refusal, request)
  return { status, headers: { ...headers, 'x-request-id': request.requestId }, body: String(body) }
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
