import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { Sender } from '../sender/service.ts'
import { type Reload, reloadFrom } from './compose/config/reload.ts'
import type { Settings } from './compose/config/settings.ts'
import type { ReloadingDeps } from './compose/process/deps.ts'
import { finishStart } from './compose/process/finish-start.ts'
import { openMemoryGuard } from './compose/process/memory.ts'
import { openProcess } from './compose/process/open-process.ts'
import { openOperator } from './compose/process/operator.ts'
import { openSender, senderMethods } from './compose/services/sender.ts'
import { openUpstreams, refuseWithoutNode } from './compose/services/upstreams.ts'

export type SenderProcess = { readonly lifecycle: Lifecycle; readonly sender: Sender; readonly reload: Reload }

/** TPU Sender as a process of its own: no other service delays its event loop. It takes no tokens and opens no access store. */
export async function startSenderProcess(settings: Settings, deps: ReloadingDeps): Promise<SenderProcess> {
  const { config } = settings
  refuseWithoutNode(settings, 'sluice sender')
  await using opening = new AsyncDisposableStack()
  const context = opening.use(
    await openProcess(settings, deps, {
      parts: PARTS,
      listeners: ['metrics', 'sender'],
      drain: config.drain,
    }),
  )
  const memory = opening.use(await openMemoryGuard(config, context))
  const upstreams = opening.use(await openUpstreams(settings, context))
  const sender = opening.use(await openSender(settings, { ...context, upstreams, memory }))
  const reload = reloadFrom(settings, {
    log: context.log,
    readSettings: deps.readSettings,
    env: deps.env,
    partsOf: () => PARTS,
    sections: ['log', ...PARTS],
    setNodes(next) {
      refuseWithoutNode(next, 'sluice sender')
      return upstreams.reload(next.config.upstreams)
    },
  })
  const operator = opening.use(
    await openOperator(settings, {
      ...context,
      addresses: { sender: sender.address },
      upstreams,
      methods: { reload, ...senderMethods(sender) },
    }),
  )
  finishStart(context, { operator, drains: { sender }, opened: opening.move() })
  return { lifecycle: context.lifecycle, sender, reload }
}

const PARTS = ['metrics', 'sender', 'upstreams'] as const
