import { openIndexer } from '../compose/services/indexer.ts'
import { indexerMethods } from '../compose/services/service-methods.ts'
import { openThreadUpstreams } from '../compose/services/upstreams.ts'
import { runThread } from '../compose/threads/thread-main.ts'

/** The indexer in a thread of `sluice serve`: it writes blocks, and formats the results of queries. */
runThread(['indexer'], async (context) => {
  await using opening = new AsyncDisposableStack()
  const access = opening.use(context.openAccess())
  const upstreams = opening.use(await openThreadUpstreams(context))
  const indexer = opening.use(await openIndexer(context.settings, { ...context, access, upstreams }))
  const opened = opening.move()
  return {
    addresses: { indexer: indexer.address },
    methods: indexerMethods(indexer),
    upstreams,
    beginLameDuck: indexer.beginLameDuck,
    drain: indexer.drain,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
})
