import type { Lifecycle, LifecycleOptions } from '../platform/process/lifecycle.ts'
import { followDedicatedNodes } from './compose/access/dedicated-nodes.ts'
import { demoCard } from './compose/access/demo.ts'
import { notifyChanges } from './compose/access/notify-changes.ts'
import { openAccess } from './compose/access/open-access.ts'
import { EXECUTION_OFF, executionSource, servedParts, servesExecution } from './compose/config/config.ts'
import { LISTENERS } from './compose/config/listener.ts'
import { type Reload, reloadFrom } from './compose/config/reload.ts'
import type { Settings } from './compose/config/settings.ts'
import type { ReloadingDeps } from './compose/process/deps.ts'
import { finishStart } from './compose/process/finish-start.ts'
import { openMemoryGuard } from './compose/process/memory.ts'
import { openProcess } from './compose/process/open-process.ts'
import { openOperator } from './compose/process/operator.ts'
import { chainAddresses, isChainEmbedded, nodesOf, openEmbeddedChain } from './compose/services/embedded-chain.ts'
import { openExecution } from './compose/services/execution.ts'
import { gatewayMethods, openGateway } from './compose/services/gateway.ts'
import { indexerMethods, openIndexer } from './compose/services/indexer.ts'
import { createLeaderSchedule } from './compose/services/leader-schedule.ts'
import { openSender, senderMethods } from './compose/services/sender.ts'
import { openShreds, shredsMethods } from './compose/services/shreds.ts'
import { superviseExecution } from './compose/services/supervise-execution.ts'
import { openUpstreams, reloadNodes } from './compose/services/upstreams.ts'

export type AllDeps = ReloadingDeps & {
  /** Prints the handover card of the demo subscription, or at a later start where the services are. */
  readonly showCard: (card: string) => void
}

export type AllOptions = { readonly demo: boolean }

export type All = { readonly lifecycle: Lifecycle; readonly reload: Reload }

/** All enabled services in one process, started in this order and closed in reverse. */
export async function startAll(settings: Settings, options: AllOptions, deps: AllDeps): Promise<All> {
  const { config } = settings
  await using opening = new AsyncDisposableStack()
  const openIf = async <T extends AsyncDisposable>(enabled: boolean, open: () => Promise<T>) => {
    deps.starting?.throwIfAborted()
    return enabled ? opening.use(await open()) : undefined
  }

  const context = opening.use(
    await openProcess(settings, deps, { parts: servedParts(config), listeners: LISTENERS, drain: drainOf(settings) }),
  )
  const { log, clock, lifecycle } = context
  const memory = opening.use(await openMemoryGuard(config, context))
  const customers = opening.use(await openAccess(settings, context))
  const { store, access } = customers

  const leaders = createLeaderSchedule()
  const shreds = await openIf(config.shreds.enabled, () => openShreds(settings, { ...context, store, access, leaders }))
  const chain = await openIf(isChainEmbedded(config), () => openEmbeddedChain(config, context, shreds?.address))
  const upstreams = opening.use(await openUpstreams(settings, context, nodesOf(config, chain)))
  opening.use(await followDedicatedNodes(access, upstreams))
  opening.use(await notifyChanges(store, access, log.child({ part: 'access' })))
  if (shreds !== undefined)
    opening.use(leaders.follow(upstreams.of(undefined), { clock, log: log.child({ part: 'shreds' }) }))

  deps.starting?.throwIfAborted()
  const bundle = opening.use(await openGateway(settings, { ...context, access, upstreams, memory }))
  const sender = await openIf(config.sender.enabled, () => openSender(settings, { ...context, upstreams, memory }))
  const ring = await openIf(servesExecution(config), () => openExecution(settings, { ...context, access, memory }))
  const isExecutionOff = config.execution.enabled && ring === undefined
  if (isExecutionOff) log.warn({ part: 'execution', reason: EXECUTION_OFF }, 'the execution service is off')
  const execution = ring && opening.use(await superviseExecution({ ...context, start: ring.start }))
  const indexer = await openIf(config.indexer.enabled, () =>
    openIndexer(settings, { ...context, access, upstreams, memory }),
  )

  const reload = reloadFrom(settings, {
    log,
    readSettings: deps.readSettings,
    env: deps.env,
    partsOf: servedParts,
    setPlans: access.setPlans,
    setNodes: reloadNodes(config, upstreams, chain),
  })
  const operator = opening.use(
    await openOperator(settings, {
      ...context,
      addresses: {
        shreds: shreds?.address,
        ...chainAddresses(chain),
        rpc: bundle.rpc,
        ws: bundle.ws,
        grpc: bundle.grpc,
        sender: sender?.address,
        execution: execution?.address,
        indexer: indexer?.address,
      },
      notes: executionSource(config) === 'simulated' ? { execution: 'simulated data' } : {},
      off: isExecutionOff ? { execution: EXECUTION_OFF } : {},
      customers,
      upstreams,
      tipAccounts: sender?.tipAccounts,
      connectionsOf: (id) => bundle.connections.of(id).length,
      methods: {
        reload,
        ...gatewayMethods(bundle),
        ...shredsMethods(shreds),
        ...senderMethods(sender),
        ...indexerMethods(indexer),
      },
    }),
  )
  if (options.demo) deps.showCard(await demoCard(settings, context, { customers, endpoints: operator.endpoints }))

  const drains = { bundle, sender, execution, indexer }
  finishStart(context, { operator, drains, opened: opening.move(), store: store.name })
  return { lifecycle, reload }
}

/** Without a configuration file there is no load balancer in front, so the lame-duck time is skipped. */
function drainOf({ config: { drain }, loaded }: Settings): LifecycleOptions {
  const isTrial = loaded.file === undefined && loaded.originOf(['drain', 'lameDuckMs']).from === 'default'
  return isTrial ? { ...drain, lameDuckMs: 0 } : drain
}
