import { openSender } from '../compose/services/sender.ts'
import { type SenderDetails, senderMethods } from '../compose/services/service-methods.ts'
import { openThreadUpstreams } from '../compose/services/upstreams.ts'
import { runThread } from '../compose/threads/thread-main.ts'

/** TPU Sender in a thread of `sluice serve`. */
runThread(['sender'], async (context) => {
  await using opening = new AsyncDisposableStack()
  const upstreams = opening.use(await openThreadUpstreams(context))
  const sender = opening.use(await openSender(context.settings, { ...context, upstreams }))
  const opened = opening.move()
  return {
    addresses: { sender: sender.address },
    details: { tipAccounts: sender.tipAccounts, schedule: sender.schedule } satisfies SenderDetails,
    methods: senderMethods(sender),
    upstreams,
    beginLameDuck: sender.beginLameDuck,
    drain: sender.drain,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
})
