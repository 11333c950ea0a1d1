import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BUILT_IN_PLANS } from '../../access/plan.ts'
import { createManualClock } from '../../core/clock.ts'
import { SubscribeRequestSchema } from '../../solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../solana/geyser/protobuf.ts'
import type { GrpcOpened } from '../../upstreams/grpc-link.ts'
import type { UpstreamNode } from '../../upstreams/node.ts'
import type { Upstream } from '../../upstreams/started-pool.ts'
import { createRequestGate } from './request-gate.ts'
import { createResume } from './resume.ts'

const PATH = '/geyser.Geyser/Subscribe'
const ACCOUNT = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
const FILTERS = { transactions: { t: { accountInclude: [ACCOUNT], accountExclude: [], accountRequired: [] } } }

/** The gate and the resumption of one stream, at nodes that take every call. */
function open() {
  const opened = { ok: true, stream: {}, upstream: { name: 'b' } } as unknown as GrpcOpened
  const upstream = { bestSlot: 1000, grpc: { open: () => Promise.resolve(opened) } } as unknown as Upstream
  const resume = createResume({ upstream: () => upstream, path: PATH, metadata: {}, clock: createManualClock() })
  let charges = 0
  const gate = createRequestGate({
    method: 'Subscribe',
    isStream: true,
    limits: () => BUILT_IN_PLANS.professional,
    monotonicMs: () => 0,
    charge: () => ++charges > 0,
    onAccepted: (message, verdict) => resume.onRequest(message, verdict),
    onRefused() {},
    end() {},
  })
  return {
    charges: () => charges,
    send: (request: object) => gate.accepts(encodeMessage(SubscribeRequestSchema, request)),
    async requestAtNextNode() {
      const next = await resume.next({ name: 'a' } as UpstreamNode, 990)
      return next && decodeMessage(SubscribeRequestSchema, next.request)
    },
  }
}

// A node replies to it with a pong and keeps its filters (bundle.md section 7.4): as the first request, the stream would be silent.
test('a ping that carries filters is not the request that the next node gets, and is not charged as one', async () => {
  const { send, charges, requestAtNextNode } = open()
  assert.ok(send(FILTERS))
  assert.ok(send({ ...FILTERS, ping: { id: 1 } }))
  assert.ok(send({ slots: { s: {} }, fromSlot: 5n, ping: { id: 2 } }))
  assert.equal(charges(), 0)
  const request = await requestAtNextNode()
  assert.deepEqual(
    [request?.ping, Object.keys(request?.transactions ?? {}), Object.keys(request?.slots ?? {}), request?.fromSlot],
    [undefined, ['t'], [], 960n],
  )
})

test('after a first request with a ping the call still covers the first request that sets filters', async () => {
  const { send, charges, requestAtNextNode } = open()
  assert.ok(send({ ...FILTERS, ping: { id: 1 } }))
  assert.equal(await requestAtNextNode(), undefined, 'no filter is set: nothing to resume')
  assert.ok(send(FILTERS))
  assert.equal(charges(), 0)
  assert.deepEqual(Object.keys((await requestAtNextNode())?.transactions ?? {}), ['t'])
})
