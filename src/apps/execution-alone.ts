import { startAccess } from '../access/service.ts'
import type { Execution } from '../execution/service.ts'
import { delay } from '../host/clock.ts'
import { takeInstanceLock } from '../host/instance-lock.ts'
import { printAddressPort } from '../host/ip-range.ts'
import { createLifecycle, type Lifecycle } from '../host/lifecycle.ts'
import { createListenerMetrics } from '../host/listener-metrics.ts'
import { createMemoryGuard } from '../host/memory-guard.ts'
import { createMetricsRegistry } from '../host/metrics-registry.ts'
import { openStateFolder } from '../host/state-folder.ts'
import { openAloneControl } from './alone-control.ts'
import type { Settings } from './commands/settings.ts'
import type { Deps } from './deps.ts'
import { openExecution } from './execution.ts'
import { openAccessStore } from './open-access-store.ts'
import { openOperatorDoor } from './operator-door.ts'
import { watchUsage } from './top/usage-watch.ts'
import { VERSION } from './version.ts'

export type ExecutionAlone = {
  readonly lifecycle: Lifecycle
  readonly execution: Execution
  /** What the process should end with: 75 when its source fell silent, so that a supervisor starts it again. */
  readonly exitCode: () => number
}

const DOORS = ['metrics', 'execution'] as const
const SILENT_EXIT_CODE = 75

/** The execution service as a process of its own. When its source is silent for 30 s it ends, and the process with it. */
export async function startExecutionAlone(settings: Settings, deps: Deps): Promise<ExecutionAlone> {
  const { config, loaded, stateDir } = settings
  const { log, clock, random, env } = deps
  let isSilent = false
  // The lame-duck time is spent in the closing below: a service that ended by itself has had its own.
  const { lameDuckMs, deadlineMs } = config.drain
  const lifecycle = createLifecycle({ lameDuckMs: 0, deadlineMs }, { clock, log })
  await using opening = new AsyncDisposableStack()
  const state = await openStateFolder(stateDir)
  opening.use(takeInstanceLock(state))
  const registry = opening.use(createMetricsRegistry({ processMetrics: true, build: { version: VERSION } }))
  const doorMetrics = createListenerMetrics(registry, DOORS)
  const memory = opening.use(createMemoryGuard(config.memory, { clock, log }))
  const store = opening.use(await openAccessStore(settings, { env, check: 'full', log: log.child({ part: 'access' }) }))
  const usage = watchUsage(store, { clock })
  const access = opening.use(
    await startAccess(
      { ...config.access, plans: config.plans },
      { store: usage.store, log, clock, random, registry, lifecycle, env, folder: loaded.folder },
    ),
  )
  const part = opening.use(
    await openExecution(settings, { ...deps, state, access, registry, memory, doorMetrics: doorMetrics('execution') }),
  )
  const execution = opening.use(await part.start(undefined))
  const operator = opening.use(
    await openOperatorDoor(settings, { ...deps, registry, lifecycle, doorMetrics: doorMetrics('metrics') }),
  )
  const services = [
    { name: 'execution', address: printAddressPort(execution.address.host, execution.address.port) },
    { name: 'metrics', address: printAddressPort(operator.address.host, operator.address.port) },
  ]
  opening.use(
    await openAloneControl({
      ...deps,
      state,
      lifecycle,
      registry,
      services,
      runs: { execution: true },
      customers: { store: store.name, snapshot: access.snapshot, usage },
    }),
  )
  const opened = opening.move()
  lifecycle.onDraining(() => {
    operator.beginLameDuck()
    execution.beginLameDuck()
  })
  lifecycle.defer('execution', async (leftMs) => {
    if (!isSilent) {
      const waitMs = Math.min(lameDuckMs, leftMs)
      await delay(clock, waitMs)
      await execution.drain(leftMs - waitMs)
    }
    await opened.disposeAsync()
  })
  void execution.ended.then(() => {
    isSilent = true
    lifecycle.stop('the event ring is silent')
  })
  lifecycle.started()
  for (const { name, address } of services) log.info({ service: name, address }, 'listening')
  log.info({ version: VERSION, state: state.path }, 'started')
  return { lifecycle, execution, exitCode: () => (isSilent ? SILENT_EXIT_CODE : 0) }
}
