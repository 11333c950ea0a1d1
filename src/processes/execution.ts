import type { Execution } from '../execution/service.ts'
import { delay } from '../platform/process/clock.ts'
import { type Lifecycle, withTimeToClose } from '../platform/process/lifecycle.ts'
import { openAccess } from './compose/access/open-access.ts'
import { assertStoreExists } from './compose/access/open-store.ts'
import type { Reload } from './compose/config/reload.ts'
import { executionSource, STANDALONE_SECTIONS } from './compose/config/served.ts'
import type { Settings } from './compose/config/settings.ts'
import type { ReloadingDeps } from './compose/process/deps.ts'
import { finishService } from './compose/process/finish-service.ts'
import { openMemoryGuard } from './compose/process/memory.ts'
import { openProcess } from './compose/process/open-process.ts'
import { openExecution } from './compose/services/execution.ts'

export type ExecutionProcess = {
  readonly lifecycle: Lifecycle
  readonly execution: Execution
  readonly reload: Reload
  /** 75 after the source fell silent, so that a supervisor restarts the process; otherwise 0. */
  readonly exitCode: () => number
}

const SILENT_EXIT_CODE = 75
const SECTIONS = STANDALONE_SECTIONS.execution

/** The execution service as a process of its own. It stops when its source is silent for 30 s. */
export async function startExecutionProcess(settings: Settings, deps: ReloadingDeps): Promise<ExecutionProcess> {
  const { config } = settings
  const { lameDuckMs, deadlineMs } = withTimeToClose(config.drain)
  let isSilent = false
  await using opening = new AsyncDisposableStack()
  const context = opening.use(
    await openProcess(settings, deps, {
      sections: SECTIONS,
      listeners: ['execution'],
      // `drain` below waits for the lame-duck time: a service that stopped by itself has waited already.
      drain: { lameDuckMs: 0, deadlineMs },
    }),
  )
  const { clock, lifecycle } = context
  if (config.execution.auth === 'token') assertStoreExists(settings, 'sluice execution with execution.auth = "token"')
  const memory = opening.use(await openMemoryGuard(config, context))
  const openedAccess = opening.use(await openAccess(settings, context))
  const { access } = openedAccess
  const part = opening.use(await openExecution(settings, { ...context, access, memory }))
  const execution = opening.use(await part.start(undefined))

  async function drain(leftMs: number): Promise<void> {
    if (isSilent) return
    const waitMs = Math.min(lameDuckMs, leftMs)
    await delay(clock, waitMs)
    await execution.drain(leftMs - waitMs)
  }

  const reload = await finishService(settings, deps, {
    ...{ sections: SECTIONS, context, opening },
    // It uses no upstream node.
    setNodes: () => undefined,
    operator: {
      addresses: { execution: execution.address },
      notes: executionSource(config) === 'simulated' ? { execution: 'simulated data' } : {},
      openedAccess,
    },
    methods: {},
    drains: { execution: { beginLameDuck: () => execution.beginLameDuck(), drain } },
  })
  void execution.ended.then(() => {
    isSilent = true
    lifecycle.stop('the event ring is silent')
  })
  return { lifecycle, execution, reload, exitCode: () => (isSilent ? SILENT_EXIT_CODE : 0) }
}
