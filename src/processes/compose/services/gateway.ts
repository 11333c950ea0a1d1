import type { Access } from '../../../access/call-access.ts'
import type { OtherConnections } from '../../../gateway/account/all-connections.ts'
import type { AccountPage } from '../../../gateway/account/page.ts'
import type { AccountReports } from '../../../gateway/account/reports.ts'
import type { DecodedSource } from '../../../gateway/geyser/decoded/source.ts'
import type { SharedLimits } from '../../../gateway/limits.ts'
import { cacheOf } from '../../../gateway/rpc/response-cache.ts'
import { type Gateway, startGateway } from '../../../gateway/service.ts'
import type { MemoryGuard } from '../../../platform/process/memory-guard.ts'
import type { Upstreams } from '../../../upstreams/service.ts'
import { ENDPOINT_NAMES, type Endpoints, endpointsOf } from '../access/endpoints.ts'
import { listenerOf } from '../config/listener.ts'
import { openHeldBytes } from '../process/memory.ts'
import type { ServiceContext, ServiceSettings } from '../process/service-context.ts'
import type { ControlPlaneChannel } from '../threads/protocol.ts'

export type GatewayPartDeps = ServiceContext<'rpc' | 'ws' | 'grpc' | 'entries'> & {
  readonly access: Access
  readonly upstreams: Upstreams
  readonly memory: Pick<MemoryGuard, 'mayAccept' | 'mayOpenStream'>
  /** Several threads listen on the same ports. */
  readonly isPortShared?: boolean
  readonly otherConnections?: OtherConnections
  /** What is counted over all threads of the gateway; without it this thread is the only one. */
  readonly limits?: SharedLimits | undefined
  /** Decoded shreds, where the product is offered and the relay runs in this process. */
  readonly decoded?: DecodedSource | undefined
  readonly decodedReport?: () => Promise<object | undefined>
  readonly accountReports?: AccountReports
  readonly accountPage?: AccountPage
}

/** JSON-RPC, WebSocket and gRPC of the Bundle, as the `bundle` section of the configuration sets them up. */
export function openGateway({ config, loaded }: ServiceSettings, deps: GatewayPartDeps): Promise<Gateway> {
  const { access, upstreams, memory, log, clock, random, registry, listenerMetrics } = deps
  const { rpc, ws, grpc, entries, cache, workers, accountPage, ...options } = config.bundle
  const listenOn = (option: typeof rpc, mayAccept: () => boolean) => ({
    ...listenerOf(option, loaded.folder, mayAccept),
    reusePort: deps.isPortShared ?? false,
  })
  return startGateway(
    {
      ...options,
      rpc: listenOn(rpc, memory.mayAccept),
      ws: { ...listenOn(ws, memory.mayOpenStream), queryToken: ws.queryToken },
      grpc: { ...listenOn(grpc, memory.mayOpenStream), healthPerSecond: grpc.healthPerSecond },
      entries: entries.enabled ? listenOn(entries, memory.mayOpenStream) : undefined,
      wsUrl: (port) => endpointsOf(config, { ws: port }).ws,
      addresses: addressesOf(endpointsOf(config)),
      // Given as a number to each of several threads.
      threads: workers === 'auto' ? 1 : workers,
      residentBytesMax: config.memory.residentBytesMax,
      cache: cacheOf(cache),
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
      decoded: deps.decoded,
      decodedReport: deps.decodedReport,
      accountReports: deps.accountReports,
      accountPage: accountPage ? deps.accountPage : undefined,
      heldBytes: openHeldBytes(config, { clock, log, registry }, deps.limits?.held.bytes),
      documents: deps.documents.files,
      docsUrl: deps.documents.docsUrlOf('rpc'),
    },
  )
}

/** The connections of the other gateway threads, which the control plane asks. */
export function otherConnections(channel: Pick<ControlPlaneChannel, 'call'>): OtherConnections {
  return {
    of: (subscriptionId) => channel.call('connections-in-other-threads', subscriptionId),
    close: (subscription, id) => channel.call('close-in-other-threads', { subscription, id }),
  }
}

/** Those that are known. */
function addressesOf(endpoints: Endpoints): Record<string, string> {
  return Object.fromEntries(
    ENDPOINT_NAMES.flatMap((name) => (endpoints[name] === undefined ? [] : [[name, endpoints[name]]])),
  )
}
