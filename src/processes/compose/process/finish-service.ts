import type { ConfigSection } from '../config/config.ts'
import { createReload, type Reload, type ReloadDeps } from '../config/reload.ts'
import { servedSections } from '../config/served.ts'
import type { Settings } from '../config/settings.ts'
import type { AdminPart } from '../services/admin.ts'
import type { ReloadingDeps } from './deps.ts'
import { finishStart, type StartedParts } from './finish-start.ts'
import type { ProcessContext } from './open-process.ts'
import { type Operator, type OperatorDeps, openOperator } from './operator.ts'

/** A process whose services have been started. */
export type ServiceProcess = {
  /** A process of one service: the sections of the configuration that it uses, besides those of every process. */
  readonly sections?: readonly ConfigSection[]
  readonly hasMemoryGuard?: boolean
  readonly context: ProcessContext<never>
  /** Everything the process has opened so far. */
  readonly opening: AsyncDisposableStack
  readonly setNodes: ReloadDeps['setNodes']
  /** Applies the log level in the threads. */
  readonly setLogLevel?: (level: string) => void
  readonly operator: Omit<OperatorDeps, keyof ProcessContext<never> | 'methods' | 'sections'>
  readonly methods: Omit<OperatorDeps['methods'], 'reload'>
  readonly admin?: AdminPart | undefined
  readonly drains?: NonNullable<StartedParts['drains']>
  /** Called when the operator has its access, before the process reports that it has started. */
  readonly beforeStarted?: (operator: Operator) => Promise<void>
}

/** The last steps of every process: what a reload changes, the operator's access, and the report that it serves. */
export async function finishService(settings: Settings, deps: ReloadingDeps, process: ServiceProcess): Promise<Reload> {
  const { sections, hasMemoryGuard = true, context, opening } = process
  const { openedAccess } = process.operator
  const reload = createReload(settings, {
    log: context.log,
    readSettings: deps.readSettings,
    env: deps.env,
    checkedSectionsOf: sections === undefined ? servedSections : () => sections,
    usedSections: sections && [
      ...['log', 'drain', ...sections],
      ...(hasMemoryGuard ? ['memory'] : []),
      ...(openedAccess === undefined ? [] : ['plans']),
    ],
    setPlans: openedAccess?.access.setPlans,
    setLogLevel: process.setLogLevel,
    setSignIn: process.admin?.setSignIn,
    setNodes: process.setNodes,
  })
  const opened: { operator?: Operator } = {}
  const admin = await process.admin?.open(() => opened.operator)
  if (admin !== undefined) opening.use(admin)
  const operator = opening.use(
    await openOperator(settings, {
      ...context,
      ...process.operator,
      addresses: { ...process.operator.addresses, admin: admin?.address },
      sections,
      methods: { reload, ...process.methods },
    }),
  )
  opened.operator = operator
  await process.beforeStarted?.(operator)
  finishStart(context, {
    operator,
    drains: { admin, ...process.drains },
    opened: opening.move(),
    store: openedAccess?.store.name,
  })
  return reload
}
