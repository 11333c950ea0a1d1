import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { Shreds } from '../shreds/service.ts'
import { createSlotLength } from '../upstreams/slot-length.ts'
import { openAccess } from './compose/access/open-access.ts'
import { assertStoreExists } from './compose/access/open-store.ts'
import { createReload, type Reload } from './compose/config/reload.ts'
import { STANDALONE_SECTIONS } from './compose/config/served.ts'
import type { Settings } from './compose/config/settings.ts'
import type { ReloadingDeps } from './compose/process/deps.ts'
import { finishStart } from './compose/process/finish-start.ts'
import { openProcess } from './compose/process/open-process.ts'
import { openOperator } from './compose/process/operator.ts'
import { createLeaderSchedule } from './compose/services/leader-schedule.ts'
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
  const { clock, log, lifecycle } = context
  assertStoreExists(settings, 'sluice shreds')
  const openedAccess = opening.use(await openAccess(settings, context))
  const { store, access } = openedAccess
  const leaders = createLeaderSchedule()
  const slotLength = createSlotLength(context)
  const { nodes } = config.upstreams
  const hasNodes = nodes.length > 0
  const shreds = opening.use(await openShreds(settings, { ...context, store, access, leaders, slotLength, hasNodes }))
  const upstreams = hasNodes ? opening.use(await openUpstreams(settings, context, nodes, slotLength)) : undefined
  if (upstreams !== undefined)
    opening.use(leaders.follow(upstreams.shared, { clock, log: log.child({ part: 'shreds' }) }))
  const reload = createReload(settings, {
    log,
    readSettings: deps.readSettings,
    env: deps.env,
    checkedSectionsOf: () => SECTIONS,
    setPlans: access.setPlans,
    usedSections: ['log', 'drain', 'plans', ...SECTIONS],
    // The schedule is followed from the start or not at all.
    setNodes: (next) => upstreams?.reload(next.config.upstreams),
  })
  const operator = opening.use(
    await openOperator(settings, {
      ...context,
      sections: SECTIONS,
      addresses: { shreds: shreds.address },
      notes: scheduleNote('shreds', shreds.status().schedule),
      openedAccess,
      slotLength,
      methods: { reload, ...shredsMethods(shreds) },
    }),
  )
  finishStart(context, { operator, opened: opening.move(), store: store.name })
  return { lifecycle, shreds, reload }
}

const SECTIONS = STANDALONE_SECTIONS.shreds
