import type { Upstreams } from '../../../upstreams/service.ts'
import type { SlotLengthLearner } from '../../../upstreams/slot-length.ts'
import { followDedicatedNodes } from '../access/dedicated-nodes.ts'
import { notifyChanges } from '../access/notify-changes.ts'
import type { Settings } from '../config/settings.ts'
import type { ProcessContext } from '../process/open-process.ts'
import type { ControlPlane } from '../threads/control-plane.ts'
import { openUpstreams } from './upstreams.ts'

export type ControlPlaneNodes = AsyncDisposable & { readonly upstreams: Upstreams }

/** The nodes of the control plane, which probes them for all threads, with the dedicated ones. From then on changes of the operator are logged. */
export async function openNodes(
  settings: Settings,
  context: ProcessContext<never>,
  { openedAccess: { store, access }, health, probes }: ControlPlane,
  nodes = settings.config.upstreams.nodes,
  slotLength?: SlotLengthLearner,
): Promise<ControlPlaneNodes> {
  await using opening = new AsyncDisposableStack()
  const onPlane = { ...context, lifecycle: health, probing: probes.start }
  const upstreams = opening.use(await openUpstreams(settings, onPlane, nodes, slotLength))
  opening.use(await followDedicatedNodes(access, upstreams))
  opening.use(await notifyChanges(store, access, context.log.child({ part: 'access' })))
  const opened = opening.move()
  return { upstreams, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}
