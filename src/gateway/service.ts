import { createCustomerNotes } from '../access/provisioning/customer-notes.ts'
import type { Access } from '../access/service.ts'
import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import { createResponseBudget, type ResponseBudget } from '../platform/http/response-budget.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import type { DoorMetrics } from '../platform/net/listener-metrics.ts'
import type { Logger } from '../platform/telemetry/logger.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import type { Upstreams } from '../upstreams/service.ts'
import { tellConnections } from './account/connection-notes.ts'
import { type Connections, createConnections } from './account/connections.ts'
import { createCustomerPages } from './account/endpoints.ts'
import { createLateRefusals } from './auth-tarpit.ts'
import { startGrpcDoor } from './geyser/grpc.ts'
import { startRpcDoor } from './http.ts'
import { bundleMetrics } from './metrics.ts'
import { startWsDoor } from './pubsub/ws.ts'
import { tellRefusals } from './refusal-notes.ts'
import { createForward, measured } from './rpc/forward.ts'
import { type AnswerCacheOptions, createAnswerCache, withAnswerCache } from './rpc/response-cache.ts'
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
  readonly cache?: AnswerCacheOptions | undefined
}

export type BundleDeps = {
  readonly access: Access
  readonly upstreams: Upstreams
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
  readonly registry: MetricsRegistry
  readonly doorMetrics: (door: 'rpc' | 'ws' | 'grpc') => DoorMetrics
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
  const { access, upstreams, clock, random, doorMetrics } = deps
  const budget = deps.budget ?? createResponseBudget(USUAL_BUDGET, clock)
  const log = deps.log.child({ part: 'bundle' })
  await using opening = new AsyncDisposableStack()
  const notes = opening.use(createCustomerNotes({ log, clock }))
  const connections = tellConnections(createConnections(deps), { notes, clock })
  const late = createLateRefusals(listeners, clock)
  const counted = bundleMetrics(deps.registry, {
    cache: () => cache?.size ?? { entries: 0, bytes: 0 },
    upstreamSubscriptions: () => ws.upstreamSubscriptions,
  })
  const metrics = {
    ...counted,
    rpc: tellRefusals(counted.rpc, 'rpc', notes),
    ws: tellRefusals(counted.ws, 'ws', notes),
    grpc: tellRefusals(counted.grpc, 'grpc', notes),
  }
  const cache = listeners.cache && createAnswerCache(listeners.cache, metrics.cache)
  const direct = createForward(upstreams)
  const forward = cache === undefined ? direct : withAnswerCache(direct, upstreams, cache)
  const common = { access, upstreams, log, clock, random, connections, late, metrics }
  const { queryToken, ...wsListen } = listeners.ws
  const ws = opening.use(
    await startWsDoor(
      { listen: wsListen, queryToken },
      { ...common, budget, callUpstream: asked(measured(forward, clock, metrics.ws)), ...doorMetrics('ws') },
    ),
  )
  const { healthPerSecond, ...grpcListen } = listeners.grpc
  const grpc = opening.use(
    await startGrpcDoor({ listen: grpcListen, healthPerSecond }, { ...common, ...doorMetrics('grpc') }),
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
    await startRpcDoor(
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
        ...doorMetrics('rpc'),
      },
    ),
  )
  const doors = [http, ws, grpc]
  const opened = opening.move()
  return {
    rpc: http.address,
    ws: ws.address,
    grpc: grpc.address,
    connections,
    beginLameDuck() {
      for (const door of doors) door.beginLameDuck()
    },
    async drain(deadlineMs) {
      await Promise.all(doors.map((door) => door.drain(deadlineMs)))
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

function healthOf(upstreams: Upstreams): 'ok' | 'behind' | 'unknown' {
  const shared = upstreams.of(undefined)
  if (!shared.isAvailable) return 'unknown'
  return shared.slotsBehind === undefined ? 'ok' : 'behind'
}
