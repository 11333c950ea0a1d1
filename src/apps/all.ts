import { startAccess } from '../access/service.ts'
import { openControlSocket } from '../host/control-socket.ts'
import { takeInstanceLock } from '../host/instance-lock.ts'
import { printAddressPort } from '../host/ip-range.ts'
import { createLifecycle, type HealthReason, type HealthState, type Lifecycle } from '../host/lifecycle.ts'
import { createListenerMetrics } from '../host/listener-metrics.ts'
import { createMetricsRegistry } from '../host/metrics-registry.ts'
import { startOperatorListener } from '../host/operator-listener.ts'
import { resolveSecret } from '../host/secret-ref.ts'
import { openStateFolder } from '../host/state-folder.ts'
import { startLocalnet } from '../localnet/service.ts'
import type { Settings } from './commands/settings.ts'
import { makeDemo } from './demo.ts'
import { currentActor, type Deps } from './deps.ts'
import { listenerOf } from './listener-of.ts'
import { openAccessStore } from './open-access-store.ts'
import { type Reload, reloadFrom } from './reload.ts'
import { VERSION } from './version.ts'

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
  /** Reads flags, environment and file again. */
  readonly readSettings: () => Promise<Settings>
  /** Prints the demo's handover card; called at most once in the life of a state folder. */
  readonly showCard: (card: string) => void
}

export type AllOptions = { readonly demo: boolean }

export type All = { readonly lifecycle: Lifecycle; readonly reload: Reload }

/** All services of this build in one process, started in the order of the story and closed in reverse. */
export async function startAll(settings: Settings, options: AllOptions, deps: AllDeps): Promise<All> {
  const { config, loaded, stateDir, plans } = settings
  const { log, clock, random, env } = deps
  const lifecycle = createLifecycle(config.drain, { clock, log })
  await using opening = new AsyncDisposableStack()
  const services: { name: string; address: string }[] = []

  const state = await openStateFolder(stateDir)
  opening.use(takeInstanceLock(state))
  const registry = opening.use(createMetricsRegistry({ processMetrics: true, build: { version: VERSION } }))
  const doorMetrics = createListenerMetrics(registry, ['metrics'])
  const store = opening.use(await openAccessStore(settings, { env, check: 'full', log: log.child({ part: 'access' }) }))
  const access = opening.use(
    await startAccess(
      { ...config.access, plans: config.plans },
      { store, log, clock, random, registry, lifecycle, env, folder: loaded.folder },
    ),
  )

  if (config.localnet.enabled ?? true) {
    const localnet = opening.use(
      await startLocalnet(
        {
          ...config.localnet,
          stateDir: await state.folder('localnet'),
          rpc: { host: '127.0.0.1', port: 0 },
          ws: { host: '127.0.0.1', port: 0 },
          grpc: { host: '127.0.0.1', port: 0 },
          shreds: {},
        },
        { log: log.child({ part: 'localnet' }), clock },
      ),
    )
    services.push(...localnet.addresses)
  }

  const metricsSecret =
    config.metrics.bearer && (await resolveSecret(config.metrics.bearer, { env, folder: loaded.folder }))
  const operator = opening.use(
    await startOperatorListener(
      { listen: listenerOf(config.metrics, loaded.folder), ...(metricsSecret ? { bearer: metricsSecret } : {}) },
      { log: log.child({ part: 'operator' }), registry, health: lifecycle.health, clock, ...doorMetrics('metrics') },
    ),
  )
  services.push({ name: 'metrics', address: printAddressPort(operator.address.host, operator.address.port) })

  const reload: Reload = reloadFrom(settings, { log, readSettings: deps.readSettings, setPlans: access.setPlans })
  opening.use(
    await openControlSocket(state.file('control.sock'), {
      log: log.child({ part: 'control' }),
      methods: {
        status: (): StatusReport => ({ ...statusNow(), services }),
        reload,
        drain: () => {
          // In the next turn, so that this answer is on its way before its socket closes.
          clock.setTimer(0, () => lifecycle.stop('sluice drain'))
          return { draining: true }
        },
      },
    }),
  )
  lifecycle.onDraining(() => operator.beginLameDuck())

  if (options.demo) {
    const on = { store, random, actor: currentActor(env), nowMs: clock.nowMs() }
    const card = await makeDemo(on, plans, settings.endpoints)
    if (card !== undefined) deps.showCard(card)
  }

  const opened = opening.move()
  lifecycle.defer('services', () => opened.disposeAsync())
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
