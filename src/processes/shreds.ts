import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { Shreds } from '../shreds/service.ts'
import { createSlotLength } from '../upstreams/slot-length.ts'
import { openAccess } from './compose/access/open-access.ts'
import { assertStoreExists } from './compose/access/open-store.ts'
import type { Reload } from './compose/config/reload.ts'
import { STANDALONE_SECTIONS } from './compose/config/served.ts'
import type { Settings } from './compose/config/settings.ts'
import type { ReloadingDeps } from './compose/process/deps.ts'
import { finishService } from './compose/process/finish-service.ts'
import { openProcess } from './compose/process/open-process.ts'
import { scheduleNote } from './compose/services/schedule-note.ts'
import { openShreds, shredsMethods } from './compose/services/shreds.ts'
import { openUpstreams } from './compose/services/upstreams.ts'

export type ShredsProcess = { readonly lifecycle: Lifecycle; readonly shreds: Shreds; readonly reload: Reload }

/** ShredStream Raw as a process of its own: no other service delays a packet. Upstream nodes, where configured, give the leader schedule. */
export async function startShredsProcess(settings: Settings, deps: ReloadingDeps): Promise<ShredsProcess> {
  const { config } = settings
  await using opening = new AsyncDisposableStack()
  const context = opening.use(
    await openProcess(settings, deps, {
      sections: SECTIONS,
      listeners: [],
      // It has no client connections that a load balancer would move first.
      drain: { ...config.drain, lameDuckMs: 0 },
    }),
  )
  assertStoreExists(settings, 'sluice shreds')
  const openedAccess = opening.use(await openAccess(settings, context))
  const { store, access } = openedAccess
  const slotLength = createSlotLength(context)
  const { nodes } = config.upstreams
  const hasNodes = nodes.length > 0
  const part = opening.use(
    await openShreds(settings, { ...context, store, access, slotLength, hasNodes, mayDecode: false }),
  )
  const { shreds } = part
  const upstreams = hasNodes ? opening.use(await openUpstreams(settings, context, nodes, slotLength)) : undefined
  if (upstreams !== undefined) opening.use(part.follow(upstreams.shared))
  const reload = await finishService(settings, deps, {
    ...{ sections: SECTIONS, hasMemoryGuard: false, context, opening },
    // The schedule is followed from the start or not at all.
    setNodes: (next) => upstreams?.reload(next.config.upstreams),
    operator: {
      addresses: { shreds: shreds.address },
      notes: scheduleNote('shreds', shreds.status().schedule),
      openedAccess,
      slotLength,
    },
    methods: shredsMethods(shreds),
  })
  return { lifecycle: context.lifecycle, shreds, reload }
}

const SECTIONS = STANDALONE_SECTIONS.shreds
