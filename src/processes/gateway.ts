import type { Bundle } from '../gateway/service.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import { followDedicatedNodes } from './compose/access/dedicated-nodes.ts'
import { notifyChanges } from './compose/access/notify-changes.ts'
import { openAccess } from './compose/access/open-access.ts'
import { type Reload, reloadFrom } from './compose/config/reload.ts'
import type { Settings } from './compose/config/settings.ts'
import type { ReloadingDeps } from './compose/process/deps.ts'
import { finishStart } from './compose/process/finish-start.ts'
import { openMemoryGuard } from './compose/process/memory.ts'
import { openProcess } from './compose/process/open-process.ts'
import { openOperator } from './compose/process/operator.ts'
import { gatewayMethods, openGateway } from './compose/services/gateway.ts'
import { openUpstreams, refuseWithoutNode } from './compose/services/upstreams.ts'

export type GatewayProcess = { readonly lifecycle: Lifecycle; readonly bundle: Bundle; readonly reload: Reload }

/** JSON-RPC, WebSocket and gRPC as a process of its own: no other service delays a call. */
export async function startGatewayProcess(settings: Settings, deps: ReloadingDeps): Promise<GatewayProcess> {
  const { config } = settings
  refuseWithoutNode(settings, 'sluice gateway')
  await using opening = new AsyncDisposableStack()
  const context = opening.use(
    await openProcess(settings, deps, {
      parts: PARTS,
      listeners: ['metrics', 'rpc', 'ws', 'grpc'],
      drain: config.drain,
    }),
  )
  const { log, lifecycle } = context
  const memory = opening.use(await openMemoryGuard(config, context))
  const customers = opening.use(await openAccess(settings, context))
  const { store, access } = customers
  const upstreams = opening.use(await openUpstreams(settings, context))
  opening.use(await followDedicatedNodes(access, upstreams))
  opening.use(await notifyChanges(store, access, log.child({ part: 'access' })))
  deps.starting?.throwIfAborted()
  const bundle = opening.use(await openGateway(settings, { ...context, access, upstreams, memory }))
  const reload = reloadFrom(settings, {
    log,
    readSettings: deps.readSettings,
    env: deps.env,
    partsOf: () => PARTS,
    setPlans: access.setPlans,
    sections: ['log', 'plans', 'memory', 'drain', ...PARTS],
    setNodes(next) {
      refuseWithoutNode(next, 'sluice gateway')
      return upstreams.reload(next.config.upstreams)
    },
  })
  const operator = opening.use(
    await openOperator(settings, {
      ...context,
      addresses: { rpc: bundle.rpc, ws: bundle.ws, grpc: bundle.grpc },
      customers,
      upstreams,
      connectionsOf: (id) => bundle.connections.of(id).length,
      methods: { reload, ...gatewayMethods(bundle) },
    }),
  )
  finishStart(context, { operator, drains: { bundle }, opened: opening.move(), store: store.name })
  return { lifecycle, bundle, reload }
}

const PARTS = ['metrics', 'access', 'bundle', 'upstreams'] as const
