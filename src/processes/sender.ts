import { ServiceError } from '../core/error.ts'
import { createLifecycle, type Lifecycle } from '../platform/process/lifecycle.ts'
import type { Sender } from '../sender/service.ts'
import { startUpstreams } from '../upstreams/service.ts'
import type { Settings } from './compose/config/settings.ts'
import type { Deps } from './compose/process/deps.ts'
import { openMemoryGuard } from './compose/process/memory.ts'
import { openProcess } from './compose/process/open-process.ts'
import { openStandaloneOperator } from './compose/process/standalone-operator.ts'
import { VERSION } from './compose/process/version.ts'
import { openSender } from './compose/services/sender.ts'

export type SenderProcess = { readonly lifecycle: Lifecycle; readonly sender: Sender }

/** The sender as a process of its own, with a loop that nothing else holds up. It asks for no token, and so needs no access store. */
export async function startSenderProcess(settings: Settings, deps: Deps): Promise<SenderProcess> {
  const { config, loaded } = settings
  const { log, clock, random, env } = deps
  if (config.upstreams.nodes.length === 0) {
    throw new ServiceError('config-invalid', 'the sender alone has no node to ask about the chain', {
      fix: 'Name at least one in upstreams.nodes; the embedded chain runs inside sluice serve.',
    })
  }
  const lifecycle = createLifecycle(config.drain, { clock, log })
  await using opening = new AsyncDisposableStack()
  const { state, registry, listenerMetrics } = opening.use(
    await openProcess(settings, {
      env,
      parts: ['metrics', 'sender', 'upstreams'],
      servers: ['metrics', 'sender'],
    }),
  )
  const memory = opening.use(await openMemoryGuard(config, { clock, log, registry }))
  const upstreams = opening.use(
    await startUpstreams(config.upstreams, { log, clock, random, registry, env, folder: loaded.folder, lifecycle }),
  )
  const sender = opening.use(
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
  const operator = opening.use(
    await openStandaloneOperator(settings, {
      ...deps,
      state,
      lifecycle,
      registry,
      listenerMetrics,
      service: { name: 'sender', address: sender.address },
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
  for (const { name, address } of operator.services) log.info({ service: name, address }, 'listening')
  log.info({ version: VERSION, state: state.path }, 'started')
  return { lifecycle, sender }
}
