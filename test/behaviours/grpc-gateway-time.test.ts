import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSubscription } from '../../src/access/provisioning/subscriptions.ts'
import { SKEW_MS } from '../../src/access/validity.ts'
import { GrpcCode } from '../../src/platform/grpc/status.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { openStream, PING, SUBSCRIBE, startGrpcGateway, tokenMetadata, unary } from '../support/gateway/grpc.ts'

test('ends calls at a silent node: a stream with UNAVAILABLE, a unary call with DEADLINE_EXCEEDED', async () => {
  await using node = await startFakeNode()
  node.onGrpcCall = (call) => call.sendHeaders()
  const times = { stallMs: 200, sweepMs: 20, unaryDeadlineMs: 200 }
  await using on = await startGrpcGateway([{ name: 'fake', grpc: node.grpc }], times)
  const { token } = await on.gateway.subscribe({})
  const { code, details } = await openStream(on.client, SUBSCRIBE, tokenMetadata(token)).ended
  assert.deepEqual([code, details], [GrpcCode.unavailable, 'the node behind this call has gone silent'])
  const { error } = await unary(on.client, PING, Buffer.alloc(0), tokenMetadata(token))
  assert.equal(error?.code, GrpcCode.deadlineExceeded)
  assert.equal(on.server.openCalls, 0)
})

test('ends streams when their token expires, without a change of the store', async () => {
  await using node = await startFakeNode()
  node.onGrpcCall = (call) => call.sendHeaders()
  await using on = await startGrpcGateway([{ name: 'fake', grpc: node.grpc }], { sweepMs: 20 })
  // Created in the past: expiry is delayed by the allowed clock skew.
  const made = await createSubscription(
    { ...on.gateway.on, nowMs: Date.now() - 2 * SKEW_MS },
    {
      customer: 'acme',
      name: 'short',
      plan: 'professional',
      products: ['bundle'],
      overrides: {},
      validUntil: Date.now() - SKEW_MS + 2500,
    },
  )
  const token = made.token?.secret ?? ''
  const { access } = on.gateway
  await until('the store is followed', () => access.snapshot().subscription(made.subscription.id) !== undefined)
  const stream = openStream(on.client, SUBSCRIBE, tokenMetadata(token))
  await stream.headers
  const { code, details } = await stream.ended
  assert.equal(code, GrpcCode.permissionDenied)
  assert.match(details, /^missing or invalid token; reason: expired; fix: .*operator/)
})

test('ends streams one after another at a shutdown', async () => {
  await using node = await startFakeNode()
  node.onGrpcCall = (call) => call.sendHeaders()
  await using on = await startGrpcGateway([{ name: 'fake', grpc: node.grpc }])
  const { token } = await on.gateway.subscribe({})
  const streams = Array.from({ length: 4 }, () => openStream(on.client, SUBSCRIBE, tokenMetadata(token)))
  await Promise.all(streams.map(({ headers }) => headers))
  const startMs = performance.now()
  const drained = on.server.drain(2000)
  const ends = await Promise.all(
    streams.map(({ ended }) => ended.then(({ code }) => ({ code, atMs: performance.now() - startMs }))),
  )
  assert.ok(ends.every(({ code }) => code === GrpcCode.unavailable))
  const times = ends.map(({ atMs }) => atMs).toSorted((a, b) => a - b)
  assert.ok((times[3] as number) - (times[0] as number) > 500, times.join())
  on.client.close()
  await drained
})
