import { openExecution } from '../compose/services/execution.ts'
import { superviseExecution } from '../compose/services/supervise-execution.ts'
import { runThread } from '../compose/threads/thread-main.ts'

/** The execution service in a thread of `sluice serve`: the stream to its clients, REST, JSON-RPC and the page. */
runThread(['execution'], async (context) => {
  await using opening = new AsyncDisposableStack()
  const access = opening.use(context.openAccess())
  const ring = opening.use(await openExecution(context.settings, { ...context, access }))
  const execution = opening.use(await superviseExecution({ ...context, start: ring.start }))
  const opened = opening.move()
  return {
    addresses: { execution: execution.address },
    beginLameDuck: execution.beginLameDuck,
    drain: execution.drain,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
})
