import { connectionsOf } from '../access/quota/permits.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import { followDedicatedNodes } from './compose/access/dedicated-nodes.ts'
import { notifyChanges } from './compose/access/notify-changes.ts'
import { type Reload, reloadFrom } from './compose/config/reload.ts'
import type { Settings } from './compose/config/settings.ts'
import type { ReloadingDeps } from './compose/process/deps.ts'
import { finishStart } from './compose/process/finish-start.ts'
import { openProcess } from './compose/process/open-process.ts'
import { openOperator } from './compose/process/operator.ts'
import { gatewayPlan, openGatewayThreads } from './compose/services/gateway-threads.ts'
import { openUpstreams, refuseWithoutNode, reloadAll, upstreamsOfThreads } from './compose/services/upstreams.ts'
import { openControlPlane } from './compose/threads/control-plane.ts'

export type GatewayProcess = { readonly lifecycle: Lifecycle; readonly reload: Reload }

/** JSON-RPC, WebSocket and gRPC as a process of its own, in threads beside its control plane. */
export async function startGatewayProcess(settings: Settings, deps: ReloadingDeps): Promise<GatewayProcess> {
  const { config } = settings
  refuseWithoutNode(settings, 'sluice gateway')
  await using opening = new AsyncDisposableStack()
  const context = opening.use(
    await openProcess(settings, deps, { parts: PARTS, listeners: ['metrics'], drain: config.drain }),
  )
  const { log, lifecycle } = context
  const plane = opening.use(await openControlPlane(settings, context, [gatewayPlan(config)]))
  const { customers } = plane
  const { store, access } = customers
  const upstreams = opening.use(await openUpstreams(settings, context))
  opening.use(await followDedicatedNodes(access, upstreams))
  opening.use(await notifyChanges(store, access, log.child({ part: 'access' })))
  deps.starting?.throwIfAborted()
  const threads = opening.use(plane.threadsOn(config.upstreams))
  const gateway = opening.use(await openGatewayThreads(settings, threads))
  const reload = reloadFrom(settings, {
    log,
    readSettings: deps.readSettings,
    env: deps.env,
    partsOf: () => PARTS,
    setPlans: access.setPlans,
    setLogLevel: threads.setLogLevel,
    sections: ['log', 'plans', 'memory', 'drain', ...PARTS],
    setNodes(next) {
      refuseWithoutNode(next, 'sluice gateway')
      return reloadAll(next.config.upstreams, upstreams, threads)
    },
  })
  const operator = opening.use(
    await openOperator(settings, {
      ...context,
      addresses: { rpc: gateway.rpc, ws: gateway.ws, grpc: gateway.grpc },
      customers,
      upstreams: upstreamsOfThreads(upstreams, threads),
      connectionsOf: (id) => connectionsOf(access.permits.taken(id)),
      threads: threads.all,
      metrics: threads.metrics,
      onDocuments: threads.publishDocuments,
      methods: { reload, ...gateway.methods },
    }),
  )
  finishStart(context, { operator, drains: { bundle: gateway }, opened: opening.move(), store: store.name })
  return { lifecycle, reload }
}

const PARTS = ['metrics', 'access', 'bundle', 'upstreams'] as const
