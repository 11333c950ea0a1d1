import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { GrpcCode } from '../../src/platform/grpc/status.ts'
import { openGrpcStream } from '../../src/platform/grpc/stream.ts'
import { openStream, startGrpcGateway, tokenMetadata } from '../support/gateway/grpc.ts'

test('a call whose stream is lost before it is relayed ends and leaves nothing open', async () => {
  // Without a session the stream ends at once, as one does whose connection is lost right after it was opened.
  const lost = openGrpcStream(undefined, {})
  await nextTurn()
  await using on = await startGrpcGateway([], {}, undefined, {
    open: () => lost,
    check: () => undefined,
    [Symbol.dispose]() {},
  })
  const { token, id } = await on.gateway.subscribe({ products: ['shreds-decoded'] })
  const { code, details } = await openStream(on.client, '/geyser.Geyser/SubscribeDeshred', tokenMetadata(token)).ended
  assert.deepEqual([code, details], [GrpcCode.unavailable, 'the node behind this call is lost'])
  assert.equal(on.server.openCalls, 0)
  assert.deepEqual(on.connections.of(id), [])
  assert.equal(on.gateway.access.permits.taken(id).grpcStreams, 0)
  assert.doesNotMatch(on.log(), /call failed/)
  assert.match(await on.registry.text('prometheus'), /^sluice_bundle_connections\{interface="grpc"\} 0$/m)
})
