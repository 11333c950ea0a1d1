import { createCustomerNotes } from '../access/provisioning/customer-notes.ts'
import type { Access } from '../access/service.ts'
import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import { createResponseBudget, type ResponseBudget } from '../platform/http/response-budget.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import type { ListenerMetrics } from '../platform/net/listener-metrics.ts'
import type { Logger } from '../platform/telemetry/logger.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import type { Upstreams } from '../upstreams/service.ts'
import { reportConnections } from './account/connection-notes.ts'
import { type Connections, createConnections } from './account/connections.ts'
import { createCustomerPages } from './account/endpoints.ts'
import { createLateRefusals } from './auth-tarpit.ts'
import { startGrpcEndpoint } from './geyser/grpc.ts'
import { startRpcServer } from './http.ts'
import { bundleMetrics } from './metrics.ts'
import { startWsServer } from './pubsub/ws.ts'
import { reportRefusals } from './refusal-notes.ts'
import { createForward, measured } from './rpc/forward.ts'
import { createResponseCache, type ResponseCacheOptions, withResponseCache } from './rpc/response-cache.ts'
import { asked, createRpc } from './rpc/rpc.ts'

export type BundleListeners = {
  readonly rpc: ListenerOptions
  readonly ws: ListenerOptions & { readonly queryToken: boolean }
  readonly grpc: ListenerOptions & { readonly healthPerSecond: number }
  /** Where customers reach the WebSocket door; told with each ticket. */
  readonly wsUrl?: ((port: number) => string) | undefined
  /** Addresses and networks whose `x-forwarded-for` is believed. */
  readonly trustedProxies?: readonly string[] | undefined
  /** Refused tokens of one address that are answered at once, before further ones are answered late. */
  readonly failuresMax?: number | undefined
  /** Keeps answers that never change. */
  readonly cache?: ResponseCacheOptions | undefined
}

export type BundleDeps = {
  readonly access: Access
  readonly upstreams: Upstreams
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
  readonly registry: MetricsRegistry
  readonly listenerMetrics: (server: 'rpc' | 'ws' | 'grpc') => ListenerMetrics
  /** Bytes of requests and responses that the process holds; by default one of the usual size. */
  readonly budget?: ResponseBudget | undefined
}

const MIB = 2 ** 20
const USUAL_BUDGET = { bytesMax: 192 * MIB, ownerBytesMax: 48 * MIB, waitMs: 2000 }

type Address = { readonly host: string; readonly port: number }

export type Bundle = AsyncDisposable & {
  readonly rpc: Address
  readonly ws: Address
  readonly grpc: Address
  readonly connections: Connections
  beginLameDuck(): void
  drain(deadlineMs: number): Promise<void>
}

/** One token opens three doors; the budget is one; the nodes behind answer. */
export async function startBundle(listeners: BundleListeners, deps: BundleDeps): Promise<Bundle> {
  const { access, upstreams, clock, random, listenerMetrics } = deps
  const budget = deps.budget ?? createResponseBudget(USUAL_BUDGET, clock)
  const log = deps.log.child({ part: 'bundle' })
  await using opening = new AsyncDisposableStack()
  const notes = opening.use(createCustomerNotes({ log, clock }))
  const connections = reportConnections(createConnections(deps), { notes, clock })
  const late = createLateRefusals(listeners, clock)
  const counted = bundleMetrics(deps.registry, {
    cache: () => cache?.size ?? { entries: 0, bytes: 0 },
    upstreamSubscriptions: () => ws.upstreamSubscriptions,
  })
  const metrics = {
    ...counted,
    rpc: reportRefusals(counted.rpc, 'rpc', notes),
    ws: reportRefusals(counted.ws, 'ws', notes),
    grpc: reportRefusals(counted.grpc, 'grpc', notes),
  }
  const cache = listeners.cache && createResponseCache(listeners.cache, metrics.cache)
  const direct = createForward(upstreams)
  const forward = cache === undefined ? direct : withResponseCache(direct, upstreams, cache)
  const common = { access, upstreams, log, clock, random, connections, late, metrics }
  const { queryToken, ...wsListen } = listeners.ws
  const ws = opening.use(
    await startWsServer(
      { listen: wsListen, queryToken },
      { ...common, budget, callUpstream: asked(measured(forward, clock, metrics.ws)), ...listenerMetrics('ws') },
    ),
  )
  const { healthPerSecond, ...grpcListen } = listeners.grpc
  const grpc = opening.use(
    await startGrpcEndpoint({ listen: grpcListen, healthPerSecond }, { ...common, ...listenerMetrics('grpc') }),
  )
  const rpc = createRpc({
    access,
    clock,
    forward: measured(forward, clock, metrics.rpc),
    meter: metrics.rpc,
    late,
    budget,
  })
  const http = opening.use(
    await startRpcServer(
      { listen: listeners.rpc },
      {
        ...common,
        rpc,
        budget,
        meter: metrics.rpc,
        pages: createCustomerPages({
          access,
          connections,
          meter: metrics.rpc,
          clock,
          wsUrl: listeners.wsUrl?.(ws.address.port),
        }),
        health: () => healthOf(upstreams),
        ...listenerMetrics('rpc'),
      },
    ),
  )
  const servers = [http, ws, grpc]
  const opened = opening.move()
  return {
    rpc: http.address,
    ws: ws.address,
    grpc: grpc.address,
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

function healthOf(upstreams: Upstreams): 'ok' | 'behind' | 'unknown' {
  const shared = upstreams.of(undefined)
  if (!shared.isAvailable) return 'unknown'
  return shared.slotsBehind === undefined ? 'ok' : 'behind'
}
