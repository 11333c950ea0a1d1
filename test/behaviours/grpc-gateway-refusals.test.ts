import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSubscription } from '../../src/access/provisioning/subscriptions.ts'
import { SKEW_MS } from '../../src/access/validity.ts'
import { GrpcCode } from '../../src/platform/grpc/status.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { SubscribeRequestSchema } from '../../src/solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../src/solana/geyser/protobuf.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import {
  type GrpcGateway,
  openStream,
  PING,
  SUBSCRIBE,
  startGrpcGateway,
  tokenMetadata,
  unary,
} from '../support/gateway/grpc.ts'

const SLOTS = encodeMessage(SubscribeRequestSchema, { slots: { s: {} } })
/** A refusal that is delayed does not come within a test. */
const OPTIONS = { refusalDelayMs: 600_000, sweepMs: 600_000 }

async function start() {
  const node = await startFakeNode()
  const requests: Uint8Array[] = []
  node.onGrpcCall = (call) => {
    call.sendHeaders()
    if (call.path === PING) call.end({ code: GrpcCode.ok })
    else call.onMessage((message) => requests.push(message))
  }
  const on = await startGrpcGateway([{ name: 'fake', grpc: node.grpc }], OPTIONS)
  return {
    on,
    requests,
    async [Symbol.asyncDispose]() {
      await on[Symbol.asyncDispose]()
      await node[Symbol.asyncDispose]()
    },
  }
}

const refusals = ({ registry }: GrpcGateway) =>
  registry.value('sluice_bundle_refused_total', { interface: 'grpc', limit: 'unitsPerMonth' })

test('a stream that is refused by its charge holds no permit while the refusal is delayed', async () => {
  await using service = await start()
  const { on } = service
  const { token, id } = await on.gateway.subscribe({ overrides: { unitsPerMonth: 1 } })
  await openStream(on.client, SUBSCRIBE, tokenMetadata(token)).headers
  const refused = openStream(on.client, SUBSCRIBE, tokenMetadata(token))
  await until('the second is refused', () => refusals(on) === 1)
  assert.equal(on.gateway.access.permits.taken(id).grpcStreams, 1)
  refused.call.cancel()
})

test('behind a request that is refused by its charge no request is read', async () => {
  await using service = await start()
  const { on, requests } = service
  const { token } = await on.gateway.subscribe({ overrides: { unitsPerMonth: 1 } })
  const stream = openStream(on.client, SUBSCRIBE, tokenMetadata(token))
  stream.send(SLOTS)
  await until('the node has the first', () => requests.length === 1)
  stream.send(SLOTS)
  await until('the second is refused', () => refusals(on) === 1)
  stream.send(SLOTS)
  // Behind it on the same connection.
  const other = await on.gateway.subscribe({})
  await unary(on.client, PING, Buffer.alloc(0), tokenMetadata(other.token))
  assert.deepEqual([refusals(on), requests.length], [1, 1])
  stream.call.cancel()
})

test('a request with a token that is no longer valid ends the stream at once', async () => {
  await using service = await start()
  const { on, requests } = service
  // Created in the past: expiry is delayed by the allowed clock skew.
  const made = await createSubscription(
    { ...on.gateway.on, nowMs: Date.now() - 2 * SKEW_MS },
    {
      ...{ customer: 'acme', name: 'short', plan: 'professional', products: ['bundle'], overrides: {} },
      validUntil: Date.now() - SKEW_MS + 2500,
    },
  )
  const { access } = on.gateway
  const subscription = () => access.snapshot().subscription(made.subscription.id)
  await until('the store is followed', () => subscription() !== undefined)
  const stream = openStream(on.client, SUBSCRIBE, tokenMetadata(made.token?.secret ?? ''))
  stream.send(SLOTS)
  await until('the node has the request', () => requests.length === 1)
  // The check of a charge is in whole seconds.
  const endsMs = (subscription()?.validUntil ?? 0) + SKEW_MS + 1000
  await until('it has expired', () => Date.now() > endsMs)
  stream.send(SLOTS)
  const { code, details } = await stream.ended
  assert.equal(code, GrpcCode.permissionDenied)
  assert.match(details, /reason: expired/)
  assert.equal(requests.length, 1)
})
