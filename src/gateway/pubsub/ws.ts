import type { Access } from '../../access/call-access.ts'
import { createFreeRefusals } from '../../access/free-refusals.ts'
import type { DocsUrl } from '../../contract/errors.ts'
import { versionHeaders } from '../../contract/versions.ts'
import { createKeyedBuckets } from '../../core/keyed-buckets.ts'
import type { HeldBytes } from '../../platform/http/held-bytes.ts'
import { sendJson } from '../../platform/http/server/reply.ts'
import { requestIdOf } from '../../platform/http/server/request-id.ts'
import { startHttpServer } from '../../platform/http/server/server.ts'
import type { AuthTarpit } from '../../platform/net/auth-tarpit.ts'
import type { ListenerOptions } from '../../platform/net/listener.ts'
import type { ListenerMetrics } from '../../platform/net/listener-metrics.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import type { RefusalRecorder } from '../../platform/telemetry/refusal-log.ts'
import { createWsServer } from '../../platform/ws/server.ts'
import type { Upstreams } from '../../upstreams/service.ts'
import type { Connections } from '../account/connections.ts'
import type { SharedLimits } from '../limits.ts'
import type { GatewayMetrics } from '../metrics.ts'
import type { Forward } from '../rpc/forward.ts'
import { FREE_MESSAGES } from './client.ts'
import { createPubSubClients } from './clients.ts'
import { createHandshakes } from './handshake.ts'
import { createUpstreamSubscriptions } from './upstream-subscriptions.ts'

export type WsServerOptions = {
  readonly listen: ListenerOptions
  /** Accepts the token itself in the query of the address. */
  readonly queryToken?: boolean
  /** Gateway threads of the process, which share its bounds; 1 where it is missing. */
  readonly threads?: number | undefined
  /** Memory limit of the process; none where it is missing. */
  readonly residentBytesMax?: number | undefined
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
    readonly heldBytes: HeldBytes
    readonly connections: Connections
    readonly tarpit: AuthTarpit
    readonly metrics: Pick<GatewayMetrics, 'ws' | 'gapsReported'>
    readonly docsUrl?: DocsUrl | undefined
    readonly refusals?: RefusalRecorder | undefined
    /** What is counted over all threads of the gateway; without it this thread is the only one. */
    readonly limits?: SharedLimits | undefined
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

/** The PubSub server: token or ticket at the handshake, then JSON-RPC with subscriptions. */
export async function startWsServer(options: WsServerOptions, deps: WsServerDeps): Promise<WsServer> {
  const { access, clock } = deps
  const { ws: meter, gapsReported } = deps.metrics
  const log = deps.log.child({ part: 'bundle-ws' })
  const shared = createUpstreamSubscriptions({ ...deps, ...pick(options, ['threads', 'residentBytesMax']) })
  const { freeMessages: table, freeRefusals } = deps.limits?.buckets ?? {}
  const clients = createPubSubClients({
    ...deps,
    freeMessages: createKeyedBuckets(FREE_MESSAGES, () => clock.monotonicMs(), table),
    freeRefusals: createFreeRefusals(clock, freeRefusals),
    ...{ upstreamSubscriptions: shared, log, meter, gapsReported },
  })
  let isDraining = false
  const handshakes = createHandshakes(
    { queryToken: options.queryToken === true },
    { ...deps, meter, isDraining: () => isDraining },
  )

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
      onConnection: (connection, request) => clients.serve(connection, handshakes.take(request)),
    },
  )
  opening.use(clients)
  opening.use(access.onChange(() => clients.renewAll()))
  const renewing = opening.use(clock.setRepeating(RENEW_MS, () => clients.renewAll()))
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
          const headers = { 'x-request-id': requestId, connection: 'close, Upgrade', upgrade: 'websocket' }
          sendJson(response, 426, { ...WEBSOCKET_ONLY, request_id: requestId }, headers)
        },
        onUpgrade: (request, socket, head) =>
          handshakes.upgrade(request, socket, () => ws.upgrade(request, socket, head)),
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

function pick<Options extends object, Name extends keyof Options>(
  options: Options,
  names: readonly Name[],
): { [Key in Name]?: Exclude<Options[Key], undefined> } {
  return Object.fromEntries(
    names.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]),
  ) as { [Key in Name]?: Exclude<Options[Key], undefined> }
}
