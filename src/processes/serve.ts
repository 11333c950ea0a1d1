import { connectionsOf } from '../access/quota/permits.ts'
import type { Notices } from '../admin/notices/service.ts'
import type { Localnet } from '../localnet/service.ts'
import type { ControlMethods } from '../platform/process/control-socket.ts'
import type { Lifecycle, LifecycleOptions } from '../platform/process/lifecycle.ts'
import type { Shreds } from '../shreds/service.ts'
import { createSlotLength } from '../upstreams/slot-length.ts'
import { followDedicatedNodes } from './compose/access/dedicated-nodes.ts'
import { demoCard } from './compose/access/demo.ts'
import { notifyChanges } from './compose/access/notify-changes.ts'
import { accountMethodsOf } from './compose/account/methods.ts'
import type { Config } from './compose/config/config.ts'
import { createReload, type Reload } from './compose/config/reload.ts'
import {
  EXECUTION_OFF,
  executionSource,
  hasReceivers,
  isUnconfigured,
  servedSections,
  undecodedReason,
} from './compose/config/served.ts'
import type { Settings } from './compose/config/settings.ts'
import { openConsole } from './compose/pages/console.ts'
import type { ReloadingDeps } from './compose/process/deps.ts'
import { finishStart } from './compose/process/finish-start.ts'
import { openProcess } from './compose/process/open-process.ts'
import { type Operator, type OperatorDeps, openOperator } from './compose/process/operator.ts'
import { openAdmin, openSignIn } from './compose/services/admin.ts'
import { openAdminHandlers } from './compose/services/admin-handlers.ts'
import { openBilling } from './compose/services/billing.ts'
import { chainAddresses, isChainEmbedded, nodesOf, openEmbeddedChain } from './compose/services/embedded-chain.ts'
import { createLeaderSchedule } from './compose/services/leader-schedule.ts'
import { localnetMethods } from './compose/services/localnet-methods.ts'
import { noticeMethods, openNotices } from './compose/services/notices.ts'
import { scheduleNote } from './compose/services/schedule-note.ts'
import { indexerMethods, type SenderDetails, senderMethods } from './compose/services/service-methods.ts'
import { decodedPartOf, decodesShreds, openShreds, shredsMethods, tableNodesOf } from './compose/services/shreds.ts'
import { openUpstreams, reloadNodes, upstreamsOfThreads } from './compose/services/upstreams.ts'
import { openControlPlane } from './compose/threads/control-plane.ts'
import type { Address } from './compose/threads/start-data.ts'
import { type Services, startServices, threadPlanOf } from './compose/threads/start-services.ts'
import { methodsOf } from './compose/threads/supervised-thread.ts'

export type ServeDeps = ReloadingDeps & {
  /** Prints the handover card of the demo subscription, or at a later start where the services are. */
  readonly showCard: (card: string) => void
}

export type ServeOptions = { readonly demo: boolean }

export type Serving = { readonly lifecycle: Lifecycle; readonly reload: Reload }

/** All enabled services in one process, started in this order and closed in reverse. */
export async function startServe(settings: Settings, options: ServeOptions, deps: ServeDeps): Promise<Serving> {
  const { config } = settings
  await using opening = new AsyncDisposableStack()
  const openIf = async <T extends AsyncDisposable>(enabled: boolean, open: () => Promise<T>) => {
    deps.starting?.throwIfAborted()
    return enabled ? opening.use(await open()) : undefined
  }

  const context = opening.use(
    await openProcess(settings, deps, {
      sections: servedSections(config),
      listeners: ['admin'],
      drain: drainOf(settings),
    }),
  )
  const { log, clock, lifecycle } = context
  const plane = opening.use(await openControlPlane(settings, context, threadPlanOf(config)))
  const { openedAccess, probes, health } = plane
  const { store, access } = openedAccess

  const leaders = createLeaderSchedule()
  const slotLength = createSlotLength(context)
  const hasNodes = isChainEmbedded(config) || config.upstreams.nodes.length > 0
  const lookupTables = decodesShreds(config) ? await createLookupTables() : undefined
  const shreds = await openIf(config.shreds.enabled, () =>
    openShreds(settings, { ...context, store, access, leaders, slotLength, hasNodes, lookupTables }),
  )
  const chain = await openIf(isChainEmbedded(config), () => openEmbeddedChain(config, context, shreds?.address))
  const nodes = nodesOf(config, chain)
  const upstreams = opening.use(
    await openUpstreams(settings, { ...context, lifecycle: health, probing: probes.start }, nodes, slotLength),
  )
  opening.use(await followDedicatedNodes(access, upstreams))
  opening.use(await notifyChanges(store, access, log.child({ part: 'access' })))
  const billing = opening.use(await openBilling(settings, context, store))
  if (shreds !== undefined) {
    const shredsLog = log.child({ part: 'shreds' })
    opening.use(leaders.follow(upstreams.shared, { clock, log: shredsLog }))
    const tableNodes = tableNodesOf(upstreams.shared, clock)
    if (lookupTables !== undefined) opening.use(lookupTables.follow(tableNodes, { ...context, log: shredsLog }))
  }

  deps.starting?.throwIfAborted()
  const threads = opening.use(plane.threadsOn({ ...config.upstreams, nodes }))
  const services = opening.use(
    await startServices(settings, threads, {
      decoded: decodedPartOf(shreds),
      accountMethods: accountMethodsOf({ ...context, store, stateDir: settings.stateDir, shreds }),
    }),
  )
  deps.starting?.throwIfAborted()
  const isExecutionOff = config.execution.enabled && services.execution === undefined
  if (isExecutionOff) log.warn({ part: 'execution', reason: EXECUTION_OFF }, 'the execution service is off')

  const undecoded = undecodedReason(config, servedSections(config))
  if (undecoded !== undefined) log.warn({ part: 'bundle' }, undecoded)

  const allUpstreams = upstreamsOfThreads(upstreams, threads)
  const notices = await openIf(hasReceivers(config.notices), () =>
    openNotices(settings, { ...context, access, shreds, metrics: threads.metrics, nodes: allUpstreams.status }),
  )

  const oidc = openSignIn(settings, context)
  const reload = createReload(settings, {
    log,
    readSettings: deps.readSettings,
    env: deps.env,
    checkedSectionsOf: servedSections,
    setPlans: access.setPlans,
    setNodes: reloadNodes(config, upstreams, chain, threads),
    setLogLevel: threads.setLogLevel,
    setSignIn: config.admin.enabled ? oidc.apply : undefined,
  })
  const started: { operator?: Operator } = {}
  const handlers = openAdminHandlers(settings, {
    random: context.random,
    store,
    access,
    notices,
    billing,
    nodesOptions: threads.nodesOptions,
    operator: () => started.operator,
  })
  const admin = await openIf(config.admin.enabled, async () =>
    openAdmin(settings, context, { store, handlers, oidc, page: (await openConsole({ log: context.log })).page }),
  )
  const served: Served = { ...services, shreds, chain, admin, notices }
  const operator = opening.use(
    await openOperator(settings, {
      ...context,
      addresses: addressesOf(served),
      notes: notesOf(config, served),
      off: isExecutionOff ? { execution: EXECUTION_OFF } : {},
      openedAccess,
      upstreams: allUpstreams,
      slotLength,
      tipAccounts: senderDetailsOf(services)?.tipAccounts,
      connectionsOf: (id) => connectionsOf(access.permits.taken(id)),
      threads: threads.all,
      metrics: threads.metrics,
      onDocuments: threads.publishDocuments,
      methods: { reload, ...controlMethodsOf(served) },
    }),
  )
  started.operator = operator
  if (options.demo) deps.showCard(await demoCard(settings, context, { openedAccess, endpoints: operator.endpoints }))

  const { gateway, sender, execution, indexer } = services
  const drains = { admin, bundle: gateway, sender, execution, indexer }
  finishStart(context, { operator, drains, opened: opening.move(), store: store.name })
  return { lifecycle, reload }
}

/** Every service of the process; undefined for those that do not run. */
type Served = Services & {
  readonly shreds: Shreds | undefined
  readonly chain: Localnet | undefined
  readonly admin: { readonly address: Address } | undefined
  readonly notices: Notices | undefined
}

function senderDetailsOf({ sender }: Services): SenderDetails | undefined {
  return sender?.details as SenderDetails | undefined
}

function addressesOf({ shreds, chain, gateway, sender, execution, indexer, admin }: Served): OperatorDeps['addresses'] {
  return {
    shreds: shreds?.address,
    ...chainAddresses(chain),
    rpc: gateway.rpc,
    ws: gateway.ws,
    grpc: gateway.grpc,
    entries: gateway.entries,
    ...sender?.addresses,
    ...execution?.addresses,
    ...indexer?.addresses,
    admin: admin?.address,
  }
}

function notesOf(config: Config, served: Served): Readonly<Record<string, string>> {
  return {
    ...(executionSource(config) === 'simulated' ? { execution: 'simulated data' } : {}),
    ...scheduleNote('shreds', served.shreds?.status().schedule),
    ...scheduleNote('sender', senderDetailsOf(served)?.schedule),
  }
}

function controlMethodsOf({ shreds, chain, gateway, sender, indexer, notices }: Served): ControlMethods {
  return {
    ...gateway.methods,
    ...shredsMethods(shreds),
    ...localnetMethods(chain),
    ...noticeMethods(notices),
    ...methodsOf(sender, senderMethods(undefined)),
    ...methodsOf(indexer, indexerMethods(undefined)),
  }
}

/** Without a configuration there is no load balancer in front, so the lame-duck time is skipped. */
function drainOf({ config: { drain }, loaded }: Settings): LifecycleOptions {
  const isSkipped = isUnconfigured(loaded) && loaded.originOf(['drain', 'lameDuckMs']).from === 'default'
  return isSkipped ? { ...drain, lameDuckMs: 0 } : drain
}

/** Loaded only where it is used: it brings the protocol of gRPC nodes. */
async function createLookupTables() {
  const { createLookupTableSource } = await import('../shreds/decoded/node-lookup-tables.ts')
  return createLookupTableSource()
}
