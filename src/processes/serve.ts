import { connectionsOf } from '../access/quota/permits.ts'
import type { Notices } from '../admin/notices/service.ts'
import type { Localnet } from '../localnet/service.ts'
import type { Lifecycle, LifecycleOptions } from '../platform/process/lifecycle.ts'
import type { Logger } from '../platform/telemetry/logger.ts'
import type { Shreds } from '../shreds/service.ts'
import { createSlotLength } from '../upstreams/slot-length.ts'
import { demoCard } from './compose/access/demo.ts'
import { accountMethodsOf } from './compose/account/methods.ts'
import type { Config } from './compose/config/config.ts'
import type { Reload } from './compose/config/reload.ts'
import {
  EXECUTION_OFF,
  executionSource,
  hasReceivers,
  isUnconfigured,
  servedSections,
  undecodedReason,
} from './compose/config/served.ts'
import type { Settings } from './compose/config/settings.ts'
import type { ReloadingDeps } from './compose/process/deps.ts'
import { finishService } from './compose/process/finish-service.ts'
import { openProcess } from './compose/process/open-process.ts'
import type { OperatorDeps } from './compose/process/operator.ts'
import { createAdminPart } from './compose/services/admin.ts'
import { openBilling } from './compose/services/billing.ts'
import { chainAddresses, isChainEmbedded, nodesOf, openEmbeddedChain } from './compose/services/embedded-chain.ts'
import { localnetMethods } from './compose/services/localnet-methods.ts'
import { openNodes } from './compose/services/nodes.ts'
import { noticeMethods, openNotices } from './compose/services/notices.ts'
import { scheduleNote } from './compose/services/schedule-note.ts'
import { indexerMethods, type SenderDetails, senderMethods } from './compose/services/service-methods.ts'
import { decodedPartOf, openShreds, shredsMethods } from './compose/services/shreds.ts'
import { reloadNodes, upstreamsOfThreads } from './compose/services/upstreams.ts'
import { openControlPlane } from './compose/threads/control-plane.ts'
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
  const { config, stateDir } = settings
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
  const plane = opening.use(await openControlPlane(settings, context, threadPlanOf(config)))
  const { openedAccess } = plane
  const { store, access } = openedAccess

  const slotLength = createSlotLength(context)
  const hasNodes = isChainEmbedded(config) || config.upstreams.nodes.length > 0
  const shredsPart = await openIf(config.shreds.enabled, () =>
    openShreds(settings, { ...context, store, access, slotLength, hasNodes, mayDecode: true }),
  )
  const shreds = shredsPart?.shreds
  const chain = await openIf(isChainEmbedded(config), () => openEmbeddedChain(config, context, shreds?.address))
  const nodes = nodesOf(config, chain)
  const { upstreams } = opening.use(await openNodes(settings, context, plane, nodes, slotLength))
  const billing = opening.use(await openBilling(settings, context, store))
  if (shredsPart !== undefined) opening.use(shredsPart.follow(upstreams.shared))

  deps.starting?.throwIfAborted()
  const threads = opening.use(plane.threadsOn({ ...config.upstreams, nodes }))
  const accountMethods = accountMethodsOf({ ...context, store, stateDir, shreds })
  const services = opening.use(
    await startServices(settings, threads, { decoded: decodedPartOf(shreds), accountMethods }),
  )
  deps.starting?.throwIfAborted()
  const isExecutionOff = config.execution.enabled && services.execution === undefined
  warnOf(config, isExecutionOff, context.log)

  const allUpstreams = upstreamsOfThreads(upstreams, threads)
  const notices = await openIf(hasReceivers(config.notices), () =>
    openNotices(settings, { ...context, access, shreds, metrics: threads.metrics, nodes: allUpstreams.status }),
  )
  deps.starting?.throwIfAborted()

  const served: Served = { ...services, shreds, chain, notices }
  const { sender, execution, indexer } = services
  const { nodesOptions } = threads
  const reload = await finishService(settings, deps, {
    context,
    opening,
    setNodes: reloadNodes(config, upstreams, chain, threads),
    setLogLevel: threads.setLogLevel,
    admin: config.admin.enabled
      ? createAdminPart(settings, context, { store, access, notices, billing, nodesOptions })
      : undefined,
    operator: {
      addresses: addressesOf(served),
      notes: notesOf(config, served),
      off: isExecutionOff ? { execution: EXECUTION_OFF } : {},
      openedAccess,
      upstreams: allUpstreams,
      slotLength,
      tipAccounts: senderDetailsOf(served)?.tipAccounts,
      connectionsOf: (id) => connectionsOf(access.permits.taken(id)),
      threads: threads.all,
      metrics: threads.metrics,
      onDocuments: threads.publishDocuments,
    },
    methods: methodsOfServed(served),
    drains: { bundle: services.gateway, sender, execution, indexer },
    async beforeStarted({ endpoints }) {
      if (options.demo) deps.showCard(await demoCard(settings, context, { openedAccess, endpoints }))
    },
  })
  return { lifecycle: context.lifecycle, reload }
}

/** Every service of the process; undefined for those that do not run. */
type Served = Services & {
  readonly shreds: Shreds | undefined
  readonly chain: Localnet | undefined
  readonly notices: Notices | undefined
}

function senderDetailsOf({ sender }: Services): SenderDetails | undefined {
  return sender?.details as SenderDetails | undefined
}

function addressesOf({ shreds, chain, gateway, sender, execution, indexer }: Served): OperatorDeps['addresses'] {
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
  }
}

function notesOf(config: Config, served: Served): Readonly<Record<string, string>> {
  return {
    ...(executionSource(config) === 'simulated' ? { execution: 'simulated data' } : {}),
    ...scheduleNote('shreds', served.shreds?.status().schedule),
    ...scheduleNote('sender', senderDetailsOf(served)?.schedule),
  }
}

function warnOf(config: Config, isExecutionOff: boolean, log: Logger): void {
  if (isExecutionOff) log.warn({ part: 'execution', reason: EXECUTION_OFF }, 'the execution service is off')
  const undecoded = undecodedReason(config, servedSections(config))
  if (undecoded !== undefined) log.warn({ part: 'bundle' }, undecoded)
}

function methodsOfServed({ shreds, chain, gateway, sender, indexer, notices }: Served) {
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
