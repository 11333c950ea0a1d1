import type { Access } from '../../../access/service.ts'
import type { OtherConnections } from '../../../gateway/account/all-connections.ts'
import type { ConnectionReport } from '../../../gateway/account/connections.ts'
import type { SharedLimits } from '../../../gateway/limits.ts'
import { type Bundle, startBundle } from '../../../gateway/service.ts'
import type { ControlMethods } from '../../../platform/process/control-socket.ts'
import type { MemoryGuard } from '../../../platform/process/memory-guard.ts'
import type { ThreadChannel } from '../../../platform/process/thread-channel.ts'
import type { Upstreams } from '../../../upstreams/service.ts'
import { endpointsOf } from '../access/endpoints.ts'
import { listenerOf } from '../config/listener.ts'
import { openResponseBudget } from '../process/memory.ts'
import type { ServiceContext, ServiceSettings } from '../process/service-context.ts'
import { nameParam } from './upstreams.ts'

export type GatewayPartDeps = ServiceContext<'rpc' | 'ws' | 'grpc'> & {
  readonly access: Access
  readonly upstreams: Upstreams
  readonly memory: Pick<MemoryGuard, 'mayAccept' | 'mayOpenStream'>
  /** Several threads listen on the same ports. */
  readonly isPortShared?: boolean
  readonly otherConnections?: OtherConnections
  /** What is counted over all threads of the gateway; without it this thread is the only one. */
  readonly limits?: SharedLimits | undefined
}

/** JSON-RPC, WebSocket and gRPC of the Bundle, as the `bundle` section of the configuration sets them up. */
export function openGateway({ config, loaded }: ServiceSettings, deps: GatewayPartDeps): Promise<Bundle> {
  const { access, upstreams, memory, log, clock, random, registry, listenerMetrics } = deps
  const { rpc, ws, grpc, trustedProxies, cache } = config.bundle
  const listenOn = (option: typeof rpc, mayAccept: () => boolean) => ({
    ...listenerOf(option, loaded.folder, mayAccept),
    reusePort: deps.isPortShared ?? false,
  })
  return startBundle(
    {
      rpc: listenOn(rpc, memory.mayAccept),
      ws: { ...listenOn(ws, memory.mayOpenStream), queryToken: ws.queryToken },
      grpc: { ...listenOn(grpc, memory.mayOpenStream), healthPerSecond: grpc.healthPerSecond },
      wsUrl: (port) => endpointsOf(config, { ws: port }).ws,
      trustedProxies,
      cache: cache.enabled ? cache : undefined,
    },
    {
      access,
      upstreams,
      log,
      clock,
      random,
      registry,
      refusals: deps.refusals,
      otherConnections: deps.otherConnections,
      listenerMetrics,
      limits: deps.limits,
      budget: openResponseBudget(config, { clock, log, registry }, deps.limits?.held.bytes),
      documents: deps.documents.files,
      docsUrl: deps.documents.docsUrlOf('rpc'),
    },
  )
}

/** A control response is one line, so the list has a maximum. */
export const CONNECTIONS_LISTED_MAX = 1000

export function gatewayMethods({ connections }: Bundle): ControlMethods {
  return {
    connections: () => connections.all(CONNECTIONS_LISTED_MAX),
    'connection-close': (params) => ({ found: connections.closeAny(nameParam(params)) }),
    // Requested by another gateway thread, for a customer.
    'connections-of': (params) => connections.of((params as { subscription: string }).subscription),
    'close-connection-of': (params) => {
      const { subscription, id } = params as { subscription: string; id: string }
      return connections.close(subscription, id)
    },
  }
}

/** The connections of the other gateway threads, which the control plane asks. */
export function otherConnections(channel: Pick<ThreadChannel, 'call'>): OtherConnections {
  return {
    of: (subscriptionId) => channel.call('connections-of', subscriptionId) as Promise<ConnectionReport[]>,
    close: (subscription, id) => channel.call('close-connection-of', { subscription, id }) as Promise<boolean>,
  }
}
