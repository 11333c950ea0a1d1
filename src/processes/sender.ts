import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { Sender } from '../sender/service.ts'
import type { Reload } from './compose/config/reload.ts'
import { STANDALONE_SECTIONS } from './compose/config/served.ts'
import type { Settings } from './compose/config/settings.ts'
import type { ReloadingDeps } from './compose/process/deps.ts'
import { finishService } from './compose/process/finish-service.ts'
import { openMemoryGuard } from './compose/process/memory.ts'
import { openProcess } from './compose/process/open-process.ts'
import { scheduleNote } from './compose/services/schedule-note.ts'
import { openSender } from './compose/services/sender.ts'
import { senderMethods } from './compose/services/service-methods.ts'
import { assertHasNode, openUpstreams, reloadListedNodes } from './compose/services/upstreams.ts'

export type SenderProcess = { readonly lifecycle: Lifecycle; readonly sender: Sender; readonly reload: Reload }

/** TPU Sender as a process of its own: no other service delays its event loop. It takes no tokens and opens no access store. */
export async function startSenderProcess(settings: Settings, deps: ReloadingDeps): Promise<SenderProcess> {
  const { config } = settings
  assertHasNode(settings, COMMAND)
  await using opening = new AsyncDisposableStack()
  const context = opening.use(
    await openProcess(settings, deps, {
      sections: SECTIONS,
      listeners: ['sender'],
      drain: config.drain,
    }),
  )
  const memory = opening.use(await openMemoryGuard(config, context))
  const upstreams = opening.use(await openUpstreams(settings, context))
  const sender = opening.use(await openSender(settings, { ...context, upstreams, memory }))
  const reload = await finishService(settings, deps, {
    sections: SECTIONS,
    context,
    opening,
    setNodes: reloadListedNodes(COMMAND, upstreams.reload),
    operator: { addresses: { sender: sender.address }, notes: scheduleNote('sender', sender.schedule), upstreams },
    methods: senderMethods(sender),
    drains: { sender },
  })
  return { lifecycle: context.lifecycle, sender, reload }
}

const COMMAND = 'sluice sender'
const SECTIONS = STANDALONE_SECTIONS.sender
