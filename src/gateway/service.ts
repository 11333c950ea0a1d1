import type { Access } from '../access/call-access.ts'
import { createCustomerLog } from '../access/customer-log.ts'
import { createFreeRefusals } from '../access/free-refusals.ts'
import type { DocsUrl } from '../contract/errors.ts'
import { createHeldBytes, type HeldBytes } from '../platform/http/held-bytes.ts'
import type { StaticFiles } from '../platform/http/server/static-file.ts'
import { createAuthTarpit } from '../platform/net/auth-tarpit.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import type { ListenerMetrics } from '../platform/net/listener-metrics.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import type { RefusalRecorder } from '../platform/telemetry/refusal-log.ts'
import type { Upstreams } from '../upstreams/service.ts'
import { allConnections, type OtherConnections } from './account/all-connections.ts'
import { type Connections, createConnections } from './account/connections.ts'
import { createAccountEndpoints } from './account/endpoints.ts'
import { logConnections } from './account/log-connections.ts'
import type { AccountPage } from './account/page.ts'
import type { AccountReports } from './account/reports.ts'
import type { DecodedSource } from './geyser/decoded/source.ts'
import { type GeyserListenersOptions, openGeyserListeners } from './geyser/open-listeners.ts'
import { startRpcServer } from './http.ts'
import { createSharedLimits, openSharedLimits, type SharedLimits } from './limits.ts'
import { startWsServer } from './pubsub/ws.ts'
import { createForward, measureForward } from './rpc/forward.ts'
import { cachePartOf, createResponseCache, type ResponseCacheOptions, withResponseCache } from './rpc/response-cache.ts'
import { createRpc } from './rpc/rpc.ts'
import { createServiceMetrics } from './service-metrics.ts'

export type GatewayListeners = GeyserListenersOptions & {
  readonly rpc: ListenerOptions
  readonly ws: ListenerOptions & { readonly queryToken: boolean }
  /** The public address of the WebSocket server, sent with each ticket; undefined where none is configured. */
  readonly wsUrl?: ((port: number) => string | undefined) | undefined
  /** The addresses of the services for customers, by name. */
  readonly addresses?: Readonly<Record<string, string>> | undefined
  /** Addresses and networks of proxies whose `x-forwarded-for` is used. */
  readonly trustedProxies?: readonly string[] | undefined
  /** Refused tokens of one address before further refusals are delayed. */
  readonly failuresMax?: number | undefined
  /** Gateway threads of the process: each has its share of the bounds that are not counted over all of them. 1 where it is missing. */
  readonly threads?: number | undefined
  /** Memory limit of the process; none where it is missing. */
  readonly residentBytesMax?: number | undefined
  /** Caches responses that never change; over all threads. */
  readonly cache?: ResponseCacheOptions | undefined
}

export type GatewayDeps = BaseDeps & {
  readonly access: Access
  readonly upstreams: Upstreams
  readonly registry: MetricsRegistry
  readonly listenerMetrics: (server: 'rpc' | 'ws' | 'grpc' | 'entries') => ListenerMetrics
  /** What is counted over all threads of the gateway; without it this thread is the only one. */
  readonly limits?: SharedLimits | undefined
  /** Bytes of requests and responses that the process holds; a default where it is missing. */
  readonly heldBytes?: HeldBytes | undefined
  /** Served under `/docs`; none where it is missing. */
  readonly documents?: StaticFiles | undefined
  /** Pages of errors; errors have no `docs_url` where it is missing. */
  readonly docsUrl?: DocsUrl | undefined
  /** Records refused requests under their id. */
  readonly refusals?: RefusalRecorder | undefined
  /** The connections of the other gateway threads; this thread is the only one where it is missing. */
  readonly otherConnections?: OtherConnections | undefined
  /** Decoded shreds; without it the methods that serve them are forwarded to the nodes. */
  readonly decoded?: DecodedSource | undefined
  /** What was decoded and lost; undefined where the engine does not run. */
  readonly decodedReport?: (() => Promise<object | undefined>) | undefined
  /** What the store has about a customer. */
  readonly accountReports?: AccountReports | undefined
  /** The customer's own page; none where it is missing. */
  readonly accountPage?: AccountPage | undefined
}

const MIB = 2 ** 20
const HELD_BYTES_DEFAULTS = { bytesMax: 192 * MIB, ownerBytesMax: 48 * MIB, waitMs: 2000 }

type Address = { readonly host: string; readonly port: number }

export type Gateway = AsyncDisposable & {
  readonly rpc: Address
  readonly ws: Address
  readonly grpc: Address
  /** Undefined where it is not configured. */
  readonly entries: Address | undefined
  readonly connections: Connections
  beginLameDuck(): void
  drain(deadlineMs: number): Promise<void>
}

/** Starts the RPC, WebSocket and gRPC servers in front of the upstreams. One token and one quota are valid for all three. */
export async function startGateway(listeners: GatewayListeners, deps: GatewayDeps): Promise<Gateway> {
  const {
    access,
    upstreams,
    clock,
    random,
    listenerMetrics,
    documents = () => undefined,
    docsUrl = () => undefined,
  } = deps
  const limits = deps.limits ?? openSharedLimits(createSharedLimits({ threads: 1 }), 0)
  const heldBytes = deps.heldBytes ?? createHeldBytes(HELD_BYTES_DEFAULTS, clock, limits.held.bytes)
  const log = deps.log.child({ part: 'bundle' })
  await using opening = new AsyncDisposableStack()
  const customerLog = opening.use(createCustomerLog({ log, clock }))
  const connections = logConnections(createConnections(deps), { customerLog, clock })
  const tarpit = createAuthTarpit(listeners, clock, limits.failures)
  const { metrics, readings } = createServiceMetrics(deps.registry, customerLog)
  const { threads = 1, residentBytesMax } = listeners
  const cache = listeners.cache && createResponseCache(cachePartOf(listeners.cache, threads), metrics.cache)
  readings.cache = cache
  const direct = createForward(upstreams)
  const forward = cache === undefined ? direct : withResponseCache(direct, upstreams, { cache, heldBytes })
  const { refusals } = deps
  const common = { access, upstreams, log, clock, random, connections, tarpit, metrics, docsUrl, refusals, limits }
  const { queryToken, ...wsListen } = listeners.ws
  const ws = opening.use(
    await startWsServer(
      { listen: { ...wsListen, connectionCounts: limits.connections.ws }, queryToken, threads, residentBytesMax },
      { ...common, heldBytes, forward: measureForward(forward, clock, metrics.ws), ...listenerMetrics('ws') },
    ),
  )
  readings.ws = ws
  const { grpc, entries } = opening.use(
    await openGeyserListeners(listeners, { ...common, listenerMetrics, decodedSource: deps.decoded }),
  )
  const rpc = createRpc({
    access,
    clock,
    forward: measureForward(forward, clock, metrics.rpc),
    meter: metrics.rpc,
    tarpit,
    heldBytes,
    freeRefusals: createFreeRefusals(clock, limits.buckets.freeRefusals),
  })
  const wsUrl = listeners.wsUrl?.(ws.address.port)
  const http = opening.use(
    await startRpcServer(
      { listen: { ...listeners.rpc, connectionCounts: limits.connections.rpc } },
      {
        ...common,
        rpc,
        heldBytes,
        documents,
        wsUrl,
        meter: metrics.rpc,
        account: createAccountEndpoints({
          access,
          connections: allConnections(connections, deps.otherConnections),
          meter: metrics.rpc,
          clock,
          wsUrl,
          table: limits.buckets.pages,
          decodedReport: deps.decodedReport,
          reports: deps.accountReports,
          addresses: listeners.addresses,
        }),
        accountPage: deps.accountPage,
        health: () => healthOf(upstreams),
        ...listenerMetrics('rpc'),
      },
    ),
  )
  const servers = [http, ws, grpc, ...(entries === undefined ? [] : [entries])]
  const opened = opening.move()
  return {
    rpc: http.address,
    ws: ws.address,
    grpc: grpc.address,
    entries: entries?.address,
    connections,
    beginLameDuck() {
      for (const server of servers) server.beginLameDuck()
    },
    async drain(deadlineMs) {
      await Promise.all(servers.map((server) => server.drain(deadlineMs)))
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

function healthOf({ shared }: Upstreams): 'ok' | 'behind' | 'unknown' {
  if (!shared.isAvailable) return 'unknown'
  return shared.slotsBehind === undefined ? 'ok' : 'behind'
}
