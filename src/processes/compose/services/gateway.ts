import type { Access } from '../../../access/service.ts'
import type { SharedLimits } from '../../../gateway/limits.ts'
import { type Bundle, startBundle } from '../../../gateway/service.ts'
import type { ControlMethods } from '../../../platform/process/control-socket.ts'
import type { MemoryGuard } from '../../../platform/process/memory-guard.ts'
import type { Upstreams } from '../../../upstreams/service.ts'
import { endpointsOf } from '../access/endpoints.ts'
import { listenerOf } from '../config/listener.ts'
import type { Settings } from '../config/settings.ts'
import { openResponseBudget } from '../process/memory.ts'
import type { ProcessContext } from '../process/open-process.ts'
import { nameParam } from './upstreams.ts'

export type GatewayPartDeps = ProcessContext<'rpc' | 'ws' | 'grpc'> & {
  readonly access: Access
  readonly upstreams: Upstreams
  readonly memory: MemoryGuard
  /** What is counted over all threads of the gateway; without it this thread is the only one. */
  readonly limits?: SharedLimits | undefined
}

/** JSON-RPC, WebSocket and gRPC of the Bundle, as the `bundle` section of the configuration sets them up. */
export function openGateway({ config, loaded }: Settings, deps: GatewayPartDeps): Promise<Bundle> {
  const { access, upstreams, memory, log, clock, random, registry, listenerMetrics } = deps
  const { rpc, ws, grpc, trustedProxies, cache } = config.bundle
  return startBundle(
    {
      rpc: listenerOf(rpc, loaded.folder, memory.mayAccept),
      ws: { ...listenerOf(ws, loaded.folder, memory.mayOpenStream), queryToken: ws.queryToken },
      grpc: { ...listenerOf(grpc, loaded.folder, memory.mayOpenStream), healthPerSecond: grpc.healthPerSecond },
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
      listenerMetrics,
      limits: deps.limits,
      budget: openResponseBudget(config, { clock, log, registry }, deps.limits?.held.bytes),
      documents: deps.documents.files,
      docsUrl: deps.documents.docsUrlOf('rpc'),
    },
  )
}

/** A control response is one line, so the list has a maximum. */
const CONNECTIONS_LISTED_MAX = 1000

export function gatewayMethods({ connections }: Bundle): ControlMethods {
  return {
    connections: () => connections.all(CONNECTIONS_LISTED_MAX),
    'connection-close': (params) => ({ found: connections.closeAny(nameParam(params)) }),
  }
}
