import type { Indexer } from '../indexer/service.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import { openAccess } from './compose/access/open-access.ts'
import { type Reload, reloadFrom } from './compose/config/reload.ts'
import type { Settings } from './compose/config/settings.ts'
import type { ReloadingDeps } from './compose/process/deps.ts'
import { finishStart } from './compose/process/finish-start.ts'
import { openMemoryGuard } from './compose/process/memory.ts'
import { openProcess } from './compose/process/open-process.ts'
import { openOperator } from './compose/process/operator.ts'
import { indexerMethods, openIndexer } from './compose/services/indexer.ts'
import { openUpstreams, refuseWithoutNode } from './compose/services/upstreams.ts'

export type IndexerProcess = { readonly lifecycle: Lifecycle; readonly indexer: Indexer; readonly reload: Reload }

/** The indexer as a process of its own: it writes the tables and serves SQL. Its data is in its state folder. */
export async function startIndexerProcess(settings: Settings, deps: ReloadingDeps): Promise<IndexerProcess> {
  const { config } = settings
  refuseWithoutNode(settings, 'sluice indexer run')
  await using opening = new AsyncDisposableStack()
  const context = opening.use(
    await openProcess(settings, deps, { parts: PARTS, listeners: ['metrics', 'indexer'], drain: config.drain }),
  )
  const { log, lifecycle } = context
  const memory = opening.use(await openMemoryGuard(config, context))
  const customers = opening.use(await openAccess(settings, context))
  const { store, access } = customers
  const upstreams = opening.use(await openUpstreams(settings, context))
  deps.starting?.throwIfAborted()
  const indexer = opening.use(await openIndexer(settings, { ...context, access, upstreams, memory }))
  const reload = reloadFrom(settings, {
    log,
    readSettings: deps.readSettings,
    env: deps.env,
    partsOf: () => PARTS,
    setPlans: access.setPlans,
    sections: ['log', 'plans', 'memory', 'drain', ...PARTS],
    setNodes(next) {
      refuseWithoutNode(next, 'sluice indexer run')
      return upstreams.reload(next.config.upstreams)
    },
  })
  const operator = opening.use(
    await openOperator(settings, {
      ...context,
      addresses: { indexer: indexer.address },
      customers,
      upstreams,
      methods: { reload, ...indexerMethods(indexer) },
    }),
  )
  finishStart(context, { operator, drains: { indexer }, opened: opening.move(), store: store.name })
  return { lifecycle, indexer, reload }
}

const PARTS = ['metrics', 'access', 'indexer', 'upstreams'] as const
