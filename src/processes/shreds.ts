import { createLifecycle, type Lifecycle } from '../platform/process/lifecycle.ts'
import type { Shreds } from '../shreds/service.ts'
import { startUpstreams } from '../upstreams/service.ts'
import { openAccess } from './compose/access/open-access.ts'
import type { Settings } from './compose/config/settings.ts'
import type { Deps } from './compose/process/deps.ts'
import { openProcess } from './compose/process/open-process.ts'
import { openStandaloneOperator } from './compose/process/standalone-operator.ts'
import { VERSION } from './compose/process/version.ts'
import { createLeaderSchedule } from './compose/services/leader-schedule.ts'
import { openShreds } from './compose/services/shreds.ts'

export type ShredsProcess = { readonly lifecycle: Lifecycle; readonly shreds: Shreds }

/** ShredStream Raw as a process of its own, so that nothing else delays a packet. Nodes are only asked who leads, where any are named. */
export async function startShredsProcess(settings: Settings, deps: Deps): Promise<ShredsProcess> {
  const { config, loaded } = settings
  const { log, clock, random, env } = deps
  // Nobody connects to this process, so nobody has to be told to go elsewhere.
  const lifecycle = createLifecycle({ ...config.drain, lameDuckMs: 0 }, { clock, log })
  await using opening = new AsyncDisposableStack()
  const { state, registry, listenerMetrics } = opening.use(
    await openProcess(settings, {
      env,
      parts: ['metrics', 'access', 'shreds', 'upstreams'],
      servers: ['metrics'],
    }),
  )
  const customers = opening.use(await openAccess(settings, { ...deps, registry, lifecycle }))
  const { store, access } = customers
  const leaders = createLeaderSchedule()
  const shreds = opening.use(
    await openShreds(settings, { ...deps, state, store, access, registry, lifecycle, leaders }),
  )
  if (config.upstreams.nodes.length > 0) {
    const upstreams = opening.use(
      await startUpstreams(config.upstreams, { log, clock, random, registry, env, folder: loaded.folder, lifecycle }),
    )
    opening.use(leaders.follow(upstreams.of(undefined), { clock, log: log.child({ part: 'shreds' }) }))
  }
  const operator = opening.use(
    await openStandaloneOperator(settings, {
      ...deps,
      state,
      lifecycle,
      registry,
      listenerMetrics,
      service: { name: 'shreds', address: shreds.address },
      customers,
      methods: { shreds: () => shreds.status() },
    }),
  )
  lifecycle.onDraining(() => operator.beginLameDuck())
  const opened = opening.move()
  lifecycle.defer('services', () => opened.disposeAsync())
  lifecycle.started()
  for (const { name, address } of operator.services) log.info({ service: name, address }, 'listening')
  log.info({ version: VERSION, state: state.path, store: store.name }, 'started')
  return { lifecycle, shreds }
}
