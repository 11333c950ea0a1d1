import { startAccess } from '../access/service.ts'
import { takeInstanceLock } from '../host/instance-lock.ts'
import { printAddressPort } from '../host/ip-range.ts'
import { createLifecycle, type Lifecycle } from '../host/lifecycle.ts'
import { createListenerMetrics } from '../host/listener-metrics.ts'
import { createMetricsRegistry } from '../host/metrics-registry.ts'
import { openStateFolder } from '../host/state-folder.ts'
import type { Shreds } from '../shreds/service.ts'
import { startUpstreams } from '../upstreams/service.ts'
import { openAloneControl } from './alone-control.ts'
import type { Settings } from './commands/settings.ts'
import type { Deps } from './deps.ts'
import { createLeaderFeed } from './leader-feed.ts'
import { openAccessStore } from './open-access-store.ts'
import { openOperatorDoor } from './operator-door.ts'
import { openShreds } from './shreds.ts'
import { watchUsage } from './top/usage-watch.ts'
import { VERSION } from './version.ts'

export type ShredsAlone = { readonly lifecycle: Lifecycle; readonly shreds: Shreds }

const DOORS = ['metrics'] as const

/** ShredStream Raw as a process of its own, so that nothing else delays a packet. Nodes are only asked who leads, where any are named. */
export async function startShredsAlone(settings: Settings, deps: Deps): Promise<ShredsAlone> {
  const { config, loaded, stateDir } = settings
  const { log, clock, random, env } = deps
  const { folder } = loaded
  // Nobody connects to this process, so nobody has to be told to go elsewhere.
  const lifecycle = createLifecycle({ ...config.drain, lameDuckMs: 0 }, { clock, log })
  await using opening = new AsyncDisposableStack()
  const state = await openStateFolder(stateDir)
  opening.use(takeInstanceLock(state))
  const registry = opening.use(createMetricsRegistry({ processMetrics: true, build: { version: VERSION } }))
  const doorMetrics = createListenerMetrics(registry, DOORS)
  const store = opening.use(await openAccessStore(settings, { env, check: 'full', log: log.child({ part: 'access' }) }))
  const usage = watchUsage(store, { clock })
  const access = opening.use(
    await startAccess(
      { ...config.access, plans: config.plans },
      { store: usage.store, log, clock, random, registry, lifecycle, env, folder },
    ),
  )
  const leaders = createLeaderFeed()
  const shreds = opening.use(
    await openShreds(settings, { ...deps, state, store, access, registry, lifecycle, leaders }),
  )
  if (config.upstreams.nodes.length > 0) {
    const upstreams = opening.use(
      await startUpstreams(config.upstreams, { log, clock, random, registry, env, folder, lifecycle }),
    )
    opening.use(leaders.follow(upstreams.of(undefined), { clock, log: log.child({ part: 'shreds' }) }))
  }
  const operator = opening.use(
    await openOperatorDoor(settings, { ...deps, registry, lifecycle, doorMetrics: doorMetrics('metrics') }),
  )
  const services = [
    { name: 'shreds', address: printAddressPort(shreds.address.host, shreds.address.port) },
    { name: 'metrics', address: printAddressPort(operator.address.host, operator.address.port) },
  ]
  opening.use(
    await openAloneControl({
      ...deps,
      state,
      lifecycle,
      registry,
      services,
      runs: { shreds: true },
      customers: { store: store.name, snapshot: access.snapshot, usage },
      methods: { shreds: () => shreds.status() },
    }),
  )
  lifecycle.onDraining(() => operator.beginLameDuck())
  const opened = opening.move()
  lifecycle.defer('services', () => opened.disposeAsync())
  lifecycle.started()
  for (const { name, address } of services) log.info({ service: name, address }, 'listening')
  log.info({ version: VERSION, state: state.path, store: store.name }, 'started')
  return { lifecycle, shreds }
}
