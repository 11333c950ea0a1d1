import { indexerMethods, openIndexer } from '../compose/services/indexer.ts'
import { openUpstreams } from '../compose/services/upstreams.ts'
import { runServiceThread } from '../compose/threads/run-service-thread.ts'

/** The indexer in a thread of `sluice serve`: it writes blocks, and formats the results of queries. */
runServiceThread(['indexer'], async (context) => {
  await using opening = new AsyncDisposableStack()
  const access = opening.use(context.openAccess())
  const upstreams = opening.use(await openUpstreams(context.settings, context, context.start.nodes))
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
