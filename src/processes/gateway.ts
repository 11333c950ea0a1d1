import { connectionsOf } from '../access/quota/permits.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import { assertStoreExists } from './compose/access/open-store.ts'
import { accountMethodsOf } from './compose/account/methods.ts'
import type { Reload } from './compose/config/reload.ts'
import { onlyInServe, STANDALONE_SECTIONS, undecodedReason } from './compose/config/served.ts'
import type { Settings } from './compose/config/settings.ts'
import type { ReloadingDeps } from './compose/process/deps.ts'
import { finishService } from './compose/process/finish-service.ts'
import { openProcess } from './compose/process/open-process.ts'
import { gatewayPlan, openGatewayThreads } from './compose/services/gateway-threads.ts'
import { openNodes } from './compose/services/nodes.ts'
import { assertHasNode, reloadAll, reloadListedNodes, upstreamsOfThreads } from './compose/services/upstreams.ts'
import { openControlPlane } from './compose/threads/control-plane.ts'

export type GatewayProcess = { readonly lifecycle: Lifecycle; readonly reload: Reload }

/** JSON-RPC, WebSocket and gRPC as a process of its own, in threads beside its control plane. */
export async function startGatewayProcess(settings: Settings, deps: ReloadingDeps): Promise<GatewayProcess> {
  const { config } = settings
  assertHasNode(settings, COMMAND)
  await using opening = new AsyncDisposableStack()
  const context = opening.use(
    await openProcess(settings, deps, { sections: SECTIONS, listeners: [], drain: config.drain }),
  )
  assertStoreExists(settings, COMMAND)
  const plane = opening.use(await openControlPlane(settings, context, [gatewayPlan(config)]))
  const { openedAccess } = plane
  const { store, access } = openedAccess
  const { upstreams } = opening.use(await openNodes(settings, context, plane))
  deps.starting?.throwIfAborted()
  const threads = opening.use(plane.threadsOn(config.upstreams))
  const accountMethods = accountMethodsOf({ ...context, store, stateDir: settings.stateDir })
  const gateway = opening.use(await openGatewayThreads(settings, threads, { accountMethods }))
  const undecoded = undecodedReason(config, SECTIONS)
  if (undecoded !== undefined) context.log.warn({ part: 'bundle' }, undecoded)
  const sections = onlyInServe(settings)
  if (sections.length > 0) context.log.warn({ sections }, NOT_RUN_HERE)
  const reload = await finishService(settings, deps, {
    sections: SECTIONS,
    context,
    opening,
    setNodes: reloadListedNodes(COMMAND, (options) => reloadAll(options, upstreams, threads)),
    setLogLevel: threads.setLogLevel,
    operator: {
      addresses: { rpc: gateway.rpc, ws: gateway.ws, grpc: gateway.grpc, entries: gateway.entries },
      openedAccess,
      upstreams: upstreamsOfThreads(upstreams, threads),
      connectionsOf: (id) => connectionsOf(access.permits.taken(id)),
      threads: threads.all,
      metrics: threads.metrics,
      onDocuments: threads.publishDocuments,
    },
    methods: gateway.methods,
    drains: { bundle: gateway },
  })
  return { lifecycle: context.lifecycle, reload }
}

const COMMAND = 'sluice gateway'
const NOT_RUN_HERE =
  'these sections are configured, and only sluice serve runs them: this process sends no usage and no notices, and has no admin API'
const SECTIONS = STANDALONE_SECTIONS.gateway
