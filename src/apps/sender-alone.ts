import { ServiceError } from '../core/service-error.ts'
import { takeInstanceLock } from '../host/instance-lock.ts'
import { printAddressPort } from '../host/ip-range.ts'
import { createLifecycle, type Lifecycle } from '../host/lifecycle.ts'
import { createListenerMetrics } from '../host/listener-metrics.ts'
import { createMemoryGuard } from '../host/memory-guard.ts'
import { createMetricsRegistry } from '../host/metrics-registry.ts'
import { openStateFolder } from '../host/state-folder.ts'
import type { Sender } from '../sender/service.ts'
import { startUpstreams } from '../upstreams/service.ts'
import { openAloneControl } from './alone-control.ts'
import type { Settings } from './commands/settings.ts'
import type { Deps } from './deps.ts'
import { openOperatorDoor } from './operator-door.ts'
import { openSender } from './sender.ts'
import { VERSION } from './version.ts'

export type SenderAlone = { readonly lifecycle: Lifecycle; readonly sender: Sender }

const DOORS = ['metrics', 'sender'] as const

/** The sender as a process of its own, with a loop that nothing else holds up. It asks for no token, and so needs no access store. */
export async function startSenderAlone({ config, loaded, ...settings }: Settings, deps: Deps): Promise<SenderAlone> {
  const { log, clock, random, env } = deps
  if (config.upstreams.nodes.length === 0) {
    throw new ServiceError('config-invalid', 'the sender alone has no node to ask about the chain', {
      fix: 'Name at least one in upstreams.nodes; the embedded chain runs inside sluice serve.',
    })
  }
  const lifecycle = createLifecycle(config.drain, { clock, log })
  await using opening = new AsyncDisposableStack()
  const state = await openStateFolder(settings.stateDir)
  opening.use(takeInstanceLock(state))
  const registry = opening.use(createMetricsRegistry({ processMetrics: true, build: { version: VERSION } }))
  const doorMetrics = createListenerMetrics(registry, DOORS)
  const memory = opening.use(createMemoryGuard(config.memory, { clock, log }))
  const upstreams = opening.use(
    await startUpstreams(config.upstreams, { log, clock, random, registry, env, folder: loaded.folder, lifecycle }),
  )
  const sender = opening.use(
    await openSender(
      { config, loaded, ...settings },
      { ...deps, state, registry, upstreams, lifecycle, memory, doorMetrics: doorMetrics('sender') },
    ),
  )
  const operator = opening.use(
    await openOperatorDoor({ config, loaded }, { ...deps, registry, lifecycle, doorMetrics: doorMetrics('metrics') }),
  )
  const services = [
    { name: 'sender', address: printAddressPort(sender.address.host, sender.address.port) },
    { name: 'metrics', address: printAddressPort(operator.address.host, operator.address.port) },
  ]
  opening.use(
    await openAloneControl({
      ...deps,
      state,
      lifecycle,
      registry,
      services,
      runs: { sender: true },
      upstreams: () => upstreams.status(),
      methods: { 'tip-stats': () => ({ ...sender.stats(), ways: sender.paths() }) },
    }),
  )
  lifecycle.onDraining(() => {
    operator.beginLameDuck()
    sender.beginLameDuck()
  })
  const opened = opening.move()
  lifecycle.defer('services', () => opened.disposeAsync())
  lifecycle.defer('sender', (deadlineMs) => sender.drain(deadlineMs))
  lifecycle.started()
  for (const { name, address } of services) log.info({ service: name, address }, 'listening')
  log.info({ version: VERSION, state: state.path }, 'started')
  return { lifecycle, sender }
}
