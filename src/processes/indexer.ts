import type { Indexer } from '../indexer/service.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import { openAccess } from './compose/access/open-access.ts'
import { assertStoreExists } from './compose/access/open-store.ts'
import type { Reload } from './compose/config/reload.ts'
import { STANDALONE_SECTIONS } from './compose/config/served.ts'
import type { Settings } from './compose/config/settings.ts'
import type { ReloadingDeps } from './compose/process/deps.ts'
import { finishService } from './compose/process/finish-service.ts'
import { openMemoryGuard } from './compose/process/memory.ts'
import { openProcess } from './compose/process/open-process.ts'
import { openIndexer } from './compose/services/indexer.ts'
import { indexerMethods } from './compose/services/service-methods.ts'
import { assertHasNode, openUpstreams, reloadListedNodes } from './compose/services/upstreams.ts'

export type IndexerProcess = { readonly lifecycle: Lifecycle; readonly indexer: Indexer; readonly reload: Reload }

/** The indexer as a process of its own: it writes the tables and serves SQL. Its data is in its state folder. */
export async function startIndexerProcess(settings: Settings, deps: ReloadingDeps): Promise<IndexerProcess> {
  const { config } = settings
  assertHasNode(settings, COMMAND)
  await using opening = new AsyncDisposableStack()
  const context = opening.use(
    await openProcess(settings, deps, { sections: SECTIONS, listeners: ['indexer'], drain: config.drain }),
  )
  assertStoreExists(settings, COMMAND)
  const memory = opening.use(await openMemoryGuard(config, context))
  const openedAccess = opening.use(await openAccess(settings, context))
  const upstreams = opening.use(await openUpstreams(settings, context))
  deps.starting?.throwIfAborted()
  const indexer = opening.use(
    await openIndexer(settings, { ...context, access: openedAccess.access, upstreams, memory }),
  )
  const reload = await finishService(settings, deps, {
    sections: SECTIONS,
    context,
    opening,
    setNodes: reloadListedNodes(COMMAND, upstreams.reload),
    operator: { addresses: { indexer: indexer.address }, openedAccess, upstreams },
    methods: indexerMethods(indexer),
    drains: { indexer },
  })
  return { lifecycle: context.lifecycle, indexer, reload }
}

const COMMAND = 'sluice indexer run'
const SECTIONS = STANDALONE_SECTIONS.indexer
