import { ServiceError } from '../core/service-error.ts'
import { openControlSocket } from '../host/control-socket.ts'
import { takeInstanceLock } from '../host/instance-lock.ts'
import { printAddressPort } from '../host/ip-range.ts'
import { createLifecycle, type Lifecycle } from '../host/lifecycle.ts'
import { createListenerMetrics } from '../host/listener-metrics.ts'
import { createMetricsRegistry } from '../host/metrics-registry.ts'
import { startOperatorListener } from '../host/operator-listener.ts'
import { resolveSecret } from '../host/secret-ref.ts'
import { openStateFolder } from '../host/state-folder.ts'
import type { Sender } from '../sender/service.ts'
import { startUpstreams } from '../upstreams/service.ts'
import type { Settings } from './commands/settings.ts'
import type { Deps } from './deps.ts'
import { listenerOf } from './listener-of.ts'
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
  const upstreams = opening.use(
    await startUpstreams(config.upstreams, { log, clock, random, registry, env, folder: loaded.folder, lifecycle }),
  )
  const sender = opening.use(
    await openSender(
      { config, loaded, ...settings },
      { ...deps, state, registry, upstreams, lifecycle, doorMetrics: doorMetrics('sender') },
    ),
  )
  const bearer = config.metrics.bearer && (await resolveSecret(config.metrics.bearer, { env, folder: loaded.folder }))
  const operator = opening.use(
    await startOperatorListener(
      { listen: listenerOf(config.metrics, loaded.folder), ...(bearer ? { bearer } : {}) },
      { log: log.child({ part: 'operator' }), registry, health: lifecycle.health, clock, ...doorMetrics('metrics') },
    ),
  )
  opening.use(
    await openControlSocket(state.file('control.sock'), {
      log: log.child({ part: 'control' }),
      methods: {
        upstreams: () => upstreams.status(),
        'tip-stats': () => ({ ...sender.stats(), ways: sender.paths() }),
        drain: () => {
          // In the next turn, so that this answer is on its way before its socket closes.
          clock.setTimer(0, () => lifecycle.stop('sluice drain'))
          return { draining: true }
        },
      },
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
  log.info({ service: 'sender', address: printAddressPort(sender.address.host, sender.address.port) }, 'listening')
  log.info({ service: 'metrics', address: printAddressPort(operator.address.host, operator.address.port) }, 'listening')
  log.info({ version: VERSION, state: state.path }, 'started')
  return { lifecycle, sender }
}
