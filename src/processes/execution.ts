import type { Execution } from '../execution/service.ts'
import { delay } from '../platform/process/clock.ts'
import { createLifecycle, type Lifecycle } from '../platform/process/lifecycle.ts'
import { openAccess } from './compose/access/open-access.ts'
import type { Settings } from './compose/config/settings.ts'
import type { Deps } from './compose/process/deps.ts'
import { openMemoryGuard } from './compose/process/memory.ts'
import { openProcess } from './compose/process/open-process.ts'
import { openStandaloneOperator } from './compose/process/standalone-operator.ts'
import { VERSION } from './compose/process/version.ts'
import { openExecution } from './compose/services/execution.ts'

export type ExecutionProcess = {
  readonly lifecycle: Lifecycle
  readonly execution: Execution
  /** What the process should end with: 75 when its source fell silent, so that a supervisor starts it again. */
  readonly exitCode: () => number
}

const SILENT_EXIT_CODE = 75

/** The execution service as a process of its own. When its source is silent for 30 s it ends, and the process with it. */
export async function startExecutionProcess(settings: Settings, deps: Deps): Promise<ExecutionProcess> {
  const { config } = settings
  const { log, clock, env } = deps
  let isSilent = false
  // The lame-duck time is spent in the closing below: a service that ended by itself has had its own.
  const { lameDuckMs, deadlineMs } = config.drain
  const lifecycle = createLifecycle({ lameDuckMs: 0, deadlineMs }, { clock, log })
  await using opening = new AsyncDisposableStack()
  const { state, registry, listenerMetrics } = opening.use(
    await openProcess(settings, {
      env,
      parts: ['metrics', 'access', 'execution'],
      servers: ['metrics', 'execution'],
    }),
  )
  const memory = opening.use(await openMemoryGuard(config, { clock, log, registry }))
  const customers = opening.use(await openAccess(settings, { ...deps, registry, lifecycle }))
  const { access } = customers
  const part = opening.use(
    await openExecution(settings, {
      ...deps,
      state,
      access,
      registry,
      memory,
      listenerMetrics: listenerMetrics('execution'),
    }),
  )
  const execution = opening.use(await part.start(undefined))
  const operator = opening.use(
    await openStandaloneOperator(settings, {
      ...deps,
      state,
      lifecycle,
      registry,
      listenerMetrics,
      service: { name: 'execution', address: execution.address },
      customers,
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
  for (const { name, address } of operator.services) log.info({ service: name, address }, 'listening')
  log.info({ version: VERSION, state: state.path }, 'started')
  return { lifecycle, execution, exitCode: () => (isSilent ? SILENT_EXIT_CODE : 0) }
}
