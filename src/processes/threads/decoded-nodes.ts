import assert from 'node:assert/strict'
import { followNodes } from '../../shreds/decoded/node-streams/follow-nodes.ts'
import { mergedNames } from '../compose/config/merged-nodes.ts'
import { openThreadUpstreams } from '../compose/services/upstreams.ts'
import { runThread } from '../compose/threads/thread-main.ts'

/** Follows the decoded streams of nodes, which the engine of ShredStream Decoded merges with what it decodes itself. */
runThread([], async (context) => {
  const { decodedNodeStreams } = context.start
  assert(decodedNodeStreams !== undefined, 'started only where nodes are merged')
  await using opening = new AsyncDisposableStack()
  const upstreams = opening.use(await openThreadUpstreams(context))
  const { grpc } = upstreams.shared
  opening.use(
    followNodes(mergedNames(context.start.nodes), decodedNodeStreams, {
      ...context,
      log: context.log.child({ part: 'shreds' }),
      openAt: (only) => async (path) => {
        const opened = await grpc.open(path, {}, { isStream: true, only })
        return opened.ok ? opened.stream : undefined
      },
    }),
  )
  const opened = opening.move()
  return {
    addresses: {},
    upstreams,
    beginLameDuck() {},
    async drain() {},
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
})
