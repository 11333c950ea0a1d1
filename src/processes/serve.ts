import { startBundle } from '../gateway/service.ts'
import { printAddressPort } from '../platform/net/ip-range.ts'
import { openControlSocket } from '../platform/process/control-socket.ts'
import { createLifecycle, type HealthReason, type HealthState, type Lifecycle } from '../platform/process/lifecycle.ts'
import type { LogTap } from '../platform/telemetry/log-tap.ts'
import { startUpstreams } from '../upstreams/service.ts'
import { followDedicatedNodes } from './compose/access/dedicated-nodes.ts'
import { makeDemo, returningHint, untilRevision } from './compose/access/demo.ts'
import { endpointsOf } from './compose/access/endpoints.ts'
import { notifyChanges } from './compose/access/notify-changes.ts'
import { openAccess } from './compose/access/open-access.ts'
import { servedParts } from './compose/config/config.ts'
import { listenerOf } from './compose/config/listener.ts'
import { LISTENERS } from './compose/config/listener-names.ts'
import { type Reload, reloadFrom } from './compose/config/reload.ts'
import type { Settings } from './compose/config/settings.ts'
import { currentActor, type Deps } from './compose/process/deps.ts'
import { logLines, parseLogRequest } from './compose/process/log-lines.ts'
import { openMemoryGuard, openResponseBudget } from './compose/process/memory.ts'
import { openProcess } from './compose/process/open-process.ts'
import { drainMethod, openOperatorServer } from './compose/process/operator-listener.ts'
import { VERSION } from './compose/process/version.ts'
import { nodeOf, startEmbeddedChain } from './compose/services/embedded-chain.ts'
import { openExecution } from './compose/services/execution.ts'
import { indexerMethods, openIndexer } from './compose/services/indexer.ts'
import { createLeaderSchedule } from './compose/services/leader-schedule.ts'
import { openSender } from './compose/services/sender.ts'
import { openShreds } from './compose/services/shreds.ts'
import { keepExecution } from './compose/services/supervise-execution.ts'
import { createTopReport } from './compose/top/report.ts'

export type StatusReport = {
  readonly state: HealthState
  readonly reasons: readonly HealthReason[]
  readonly version: string
  readonly pid: number
  readonly uptimeSeconds: number
  readonly store: string
  readonly revision: number
  readonly customers: number
  readonly subscriptions: number
  readonly tokens: number
  readonly services: readonly { readonly name: string; readonly address: string }[]
}

export type AllDeps = Deps & {
  /** Where the log can be looked at while it is written. */
  readonly logTap: LogTap
  /** Reads flags, environment and file again. */
  readonly readSettings: () => Promise<Settings>
  /** Prints the demo's handover card at the first start on a state folder, and at later ones where things are. */
  readonly showCard: (card: string) => void
}

export type AllOptions = { readonly demo: boolean }

export type All = { readonly lifecycle: Lifecycle; readonly reload: Reload }

/** All services of this build in one process, started in the order of the story and closed in reverse. */
export async function startAll(settings: Settings, options: AllOptions, deps: AllDeps): Promise<All> {
  const { config, loaded, plans } = settings
  const { log, clock, random, env } = deps
  // Without a configuration nobody balances load in front of it: it leaves at once.
  const isTrial = loaded.file === undefined && loaded.originOf(['drain', 'lameDuckMs']).from === 'default'
  const lifecycle = createLifecycle(isTrial ? { ...config.drain, lameDuckMs: 0 } : config.drain, { clock, log })
  await using opening = new AsyncDisposableStack()
  const services: { name: string; address: string }[] = []

  const { state, registry, listenerMetrics } = opening.use(
    await openProcess(settings, { env, parts: servedParts(config), servers: LISTENERS }),
  )
  const memory = opening.use(await openMemoryGuard(config, { clock, log, registry }))
  const budget = openResponseBudget(config, { clock, log, registry })
  const { store, usage, access } = opening.use(await openAccess(settings, { ...deps, registry, lifecycle }))

  const leaders = createLeaderSchedule()
  const shreds = config.shreds.enabled
    ? opening.use(await openShreds(settings, { ...deps, state, store, access, registry, lifecycle, leaders }))
    : undefined
  if (shreds !== undefined)
    services.push({ name: 'shreds', address: printAddressPort(shreds.address.host, shreds.address.port) })

  const nodes = [...config.upstreams.nodes]
  if (config.localnet.enabled ?? nodes.length === 0) {
    const localnet = opening.use(
      await startEmbeddedChain(config, await state.folder('localnet'), deps, shreds?.address),
    )
    services.push(...localnet.addresses)
    if (nodes.length === 0) nodes.push(nodeOf(localnet))
  }
  const upstreams = opening.use(
    await startUpstreams(
      { ...config.upstreams, nodes },
      { log, clock, random, registry, env, folder: loaded.folder, lifecycle },
    ),
  )
  opening.use(await followDedicatedNodes(access, upstreams))
  opening.use(await notifyChanges(store, access, log.child({ part: 'access' })))
  if (shreds !== undefined)
    opening.use(leaders.follow(upstreams.of(undefined), { clock, log: log.child({ part: 'shreds' }) }))
  const bundle = opening.use(
    await startBundle(
      {
        rpc: listenerOf(config.bundle.rpc, loaded.folder, memory.mayAccept),
        ws: {
          ...listenerOf(config.bundle.ws, loaded.folder, memory.mayOpenStream),
          queryToken: config.bundle.ws.queryToken,
        },
        grpc: {
          ...listenerOf(config.bundle.grpc, loaded.folder, memory.mayOpenStream),
          healthPerSecond: config.bundle.grpc.healthPerSecond,
        },
        wsUrl: (ws) => endpointsOf(config, { ws }).ws ?? '',
        trustedProxies: config.bundle.trustedProxies,
        cache: config.bundle.cache.enabled ? config.bundle.cache : undefined,
      },
      { access, upstreams, log, clock, random, registry, listenerMetrics, budget },
    ),
  )
  for (const name of ['rpc', 'ws', 'grpc'] as const) {
    services.push({ name, address: printAddressPort(bundle[name].host, bundle[name].port) })
  }
  const sender = config.sender.enabled
    ? opening.use(
        await openSender(settings, {
          ...deps,
          state,
          registry,
          upstreams,
          lifecycle,
          memory,
          listenerMetrics: listenerMetrics('sender'),
        }),
      )
    : undefined
  if (sender !== undefined)
    services.push({ name: 'sender', address: printAddressPort(sender.address.host, sender.address.port) })

  const executionPart = config.execution.enabled
    ? opening.use(
        await openExecution(settings, {
          ...deps,
          state,
          access,
          registry,
          memory,
          listenerMetrics: listenerMetrics('execution'),
        }),
      )
    : undefined
  const execution =
    executionPart === undefined
      ? undefined
      : opening.use(await keepExecution({ log, clock, random, lifecycle, start: executionPart.start }))
  if (execution !== undefined)
    services.push({ name: 'execution', address: printAddressPort(execution.address.host, execution.address.port) })

  const indexer = config.indexer.enabled
    ? opening.use(
        await openIndexer(settings, {
          ...deps,
          state,
          access,
          registry,
          upstreams,
          memory,
          listenerMetrics: listenerMetrics('indexer'),
        }),
      )
    : undefined
  if (indexer !== undefined)
    services.push({ name: 'indexer', address: printAddressPort(indexer.address.host, indexer.address.port) })

  const operator = opening.use(
    await openOperatorServer(settings, { ...deps, registry, lifecycle, listenerMetrics: listenerMetrics('metrics') }),
  )
  services.push({ name: 'metrics', address: printAddressPort(operator.address.host, operator.address.port) })

  const reload: Reload = reloadFrom(settings, { log, readSettings: deps.readSettings, setPlans: access.setPlans })
  const status = (): StatusReport => ({ ...statusNow(), services })
  opening.use(
    await openControlSocket(state.file('control.sock'), {
      log: log.child({ part: 'control' }),
      methods: {
        status,
        top: createTopReport({
          registry,
          clock,
          usage,
          snapshot: access.snapshot,
          status,
          upstreams: () => upstreams.status(),
          streamsOf: (id) => bundle.connections.of(id).length,
          runs: {
            shreds: shreds !== undefined,
            sender: sender !== undefined,
            indexer: indexer !== undefined,
            execution: execution !== undefined,
          },
        }),
        logs: (params, { signal }) =>
          logLines(deps.logTap, parseLogRequest(params), {
            snapshot: access.snapshot(),
            signal,
            clock,
            ratesOf: (id) => ({ ...usage.of(id), streams: bundle.connections.of(id).length }),
          }),
        reload,
        upstreams: () => upstreams.status(),
        shreds: () => shreds?.status() ?? null,
        ...indexerMethods(indexer),
        'tip-stats': () => ({ ...sender?.stats(), ways: sender?.paths() ?? [] }),
        'upstream-drain': (params) => ({ found: upstreams.drain(nameOf(params)) }),
        connections: () => bundle.connections.all(CONNECTIONS_SHOWN_MAX),
        'connection-close': (params) => ({ found: bundle.connections.closeAny(nameOf(params)) }),
        'upstream-undrain': (params) => ({ found: upstreams.undrain(nameOf(params)) }),
        drain: drainMethod(lifecycle, clock),
      },
    }),
  )
  lifecycle.onDraining(() => {
    operator.beginLameDuck()
    bundle.beginLameDuck()
    sender?.beginLameDuck()
    execution?.beginLameDuck()
    indexer?.beginLameDuck()
  })

  if (options.demo) {
    const on = { store, random, actor: currentActor(env), nowMs: clock.nowMs() }
    const endpoints = endpointsOf(config, {
      rpc: bundle.rpc.port,
      ws: bundle.ws.port,
      grpc: bundle.grpc.port,
      sender: sender?.address.port,
      tipAccounts: sender?.tipAccounts,
      execution: execution?.address.port,
      indexer: indexer?.address.port,
    })
    const card = await makeDemo(on, plans, endpoints)
    // Shown once the doors know its token, so that its lines work the moment they are read.
    if (card !== undefined) await untilRevision(access, await store.revision())
    deps.showCard(card ?? (await returningHint(store, endpoints)))
  }

  const opened = opening.move()
  lifecycle.defer('services', () => opened.disposeAsync())
  lifecycle.defer('bundle', (deadlineMs) => bundle.drain(deadlineMs))
  if (sender !== undefined) lifecycle.defer('sender', (deadlineMs) => sender.drain(deadlineMs))
  if (execution !== undefined) lifecycle.defer('execution', (deadlineMs) => execution.drain(deadlineMs))
  if (indexer !== undefined) lifecycle.defer('indexer', (deadlineMs) => indexer.drain(deadlineMs))
  lifecycle.started()
  for (const { name, address } of services) log.info({ service: name, address }, 'listening')
  log.info({ version: VERSION, state: state.path, store: store.name }, 'started')
  return { lifecycle, reload }

  function statusNow(): Omit<StatusReport, 'services'> {
    const { state: health, reasons, startedMs } = lifecycle.health()
    const snapshot = access.snapshot()
    return {
      state: health,
      reasons,
      version: VERSION,
      pid: process.pid,
      uptimeSeconds: Math.floor((clock.nowMs() - startedMs) / 1000),
      store: store.name,
      revision: snapshot.revision,
      ...snapshot.counts(),
    }
  }
}

/** A control answer is one line; who has more open looks at the metrics. */
const CONNECTIONS_SHOWN_MAX = 1000

/** The one word a control call carries. */
function nameOf(params: unknown): string {
  return typeof params === 'object' && params !== null && 'name' in params ? String(params.name) : ''
}
