import type { NodesOptions } from '../../../upstreams/node-spec.ts'
import type { NodeChange } from '../../../upstreams/pool/members.ts'
import type { ConfigSection } from '../config/config.ts'
import { createReload, type Reload } from '../config/reload.ts'
import type { Settings } from '../config/settings.ts'
import { assertHasNode } from '../services/upstreams.ts'
import type { ReloadingDeps } from './deps.ts'
import { finishStart, type StartedParts } from './finish-start.ts'
import type { ProcessContext } from './open-process.ts'
import { type OperatorDeps, openOperator } from './operator.ts'

/** A process that runs one service on the nodes of the configuration. */
export type ServiceProcess = {
  /** As in messages to the operator. */
  readonly command: string
  /** The sections of the configuration that it uses, besides those of every process. */
  readonly sections: readonly ConfigSection[]
  readonly context: ProcessContext<never>
  /** Everything the process has opened so far. */
  readonly opening: AsyncDisposableStack
  readonly setNodes: (options: NodesOptions) => Promise<readonly NodeChange[]>
  /** Applies the log level in the threads. */
  readonly setLogLevel?: (level: string) => void
  readonly operator: Omit<OperatorDeps, keyof ProcessContext<never> | 'methods' | 'sections'>
  readonly methods: Omit<OperatorDeps['methods'], 'reload'>
  readonly drains: NonNullable<StartedParts['drains']>
}

/** The last steps of such a process: what a reload changes, the operator's access, and the report that it serves. */
export async function finishService(settings: Settings, deps: ReloadingDeps, process: ServiceProcess): Promise<Reload> {
  const { command, sections, context, opening, operator, drains } = process
  const { openedAccess } = operator
  const reload = createReload(settings, {
    log: context.log,
    readSettings: deps.readSettings,
    env: deps.env,
    checkedSectionsOf: () => sections,
    usedSections: ['log', 'memory', 'drain', ...(openedAccess === undefined ? [] : ['plans']), ...sections],
    ...(openedAccess && { setPlans: openedAccess.access.setPlans }),
    ...(process.setLogLevel && { setLogLevel: process.setLogLevel }),
    setNodes(next) {
      assertHasNode(next, command)
      return process.setNodes(next.config.upstreams)
    },
  })
  const opened = opening.use(
    await openOperator(settings, { ...context, ...operator, sections, methods: { reload, ...process.methods } }),
  )
  finishStart(context, {
    operator: opened,
    drains,
    opened: opening.move(),
    ...(openedAccess && { store: openedAccess.store.name }),
  })
  return reload
}
