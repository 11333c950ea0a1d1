import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BUILT_IN_PLANS } from '../../access/plan.ts'
import { createManualClock } from '../../core/clock.ts'
import { SubscribeRequestSchema } from '../../solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../solana/geyser/protobuf.ts'
import type { GrpcOpened } from '../../upstreams/grpc-link.ts'
import type { UpstreamNode } from '../../upstreams/node.ts'
import type { Upstream } from '../../upstreams/upstream.ts'
import { createRequestCheck } from './request-check.ts'
import { createResume } from './resume.ts'

const PATH = '/geyser.Geyser/Subscribe'
const ACCOUNT = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
const FILTERS = { transactions: { t: { accountInclude: [ACCOUNT], accountExclude: [], accountRequired: [] } } }

/** The check of requests and the resumption of one stream, at nodes that take every call. The slots are those of the nodes a, b and c. */
function open(...slots: number[]) {
  const clock = createManualClock()
  const nodes = ['a', 'b', 'c'].map((name, at) => ({ name, health: { slot: slots[at] ?? 1000 } }))
  let at = 0
  const take = () => ({ ok: true, stream: {}, node: nodes[++at % nodes.length] }) as unknown as GrpcOpened
  const upstream = { bestSlot: 1000, grpc: { open: () => Promise.resolve(take()) } } as unknown as Upstream
  const resume = createResume({
    node: nodes[0] as UpstreamNode,
    upstream: () => upstream,
    path: PATH,
    metadata: {},
    isMovable: () => true,
    clock,
  })
  let charges = 0
  const requestCheck = createRequestCheck({
    method: 'Subscribe',
    isStream: true,
    isForwarded: true,
    limits: () => BUILT_IN_PLANS.professional,
    monotonicMs: () => 0,
    charge: () => ++charges > 0,
    onAccepted: (message, verdict) => resume.onRequest(message, verdict),
    onRefused() {},
    end() {},
  })
  return {
    clock,
    charges: () => charges,
    send: (request: object) => requestCheck.accepts(encodeMessage(SubscribeRequestSchema, request)),
    onData: resume.onData,
    onRequest: resume.onRequest,
    onLive: resume.onLive,
    async requestAtNextNode() {
      const next = await resume.next()
      return next && decodeMessage(SubscribeRequestSchema, next.request)
    },
  }
}

// A node replies to it with a pong and keeps its filters: as the first request, the stream would be silent.
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

test('continues where the stream was at its own node, which may be behind the best', async () => {
  for (const [slot, expected] of [
    [800, 760n],
    [0, 960n],
  ] as const) {
    const { send, onData, requestAtNextNode } = open(slot)
    assert.ok(send(FILTERS))
    onData({ slot: undefined, messages: 1, hasUnread: false })
    assert.equal((await requestAtNextNode())?.fromSlot, expected)
  }
})

test('a node that is lost while it sends past slots again does not shorten them', async () => {
  const { send, onData, onLive, requestAtNextNode } = open(800)
  assert.ok(send(FILTERS))
  onData({ slot: 800, messages: 1, hasUnread: false })
  assert.equal((await requestAtNextNode())?.fromSlot, 760n)
  onLive()
  onData({ slot: 765, messages: 5, hasUnread: false })
  onData({ slot: undefined, messages: 1, hasUnread: false })
  assert.equal((await requestAtNextNode())?.fromSlot, 760n)
})

test('a change of the filters keeps the position; one with from_slot replays', async () => {
  const changed = open()
  assert.ok(changed.send(FILTERS))
  changed.onData({ slot: 900, messages: 3, hasUnread: false })
  assert.ok(changed.send({ slots: { s: {} } }))
  assert.equal((await changed.requestAtNextNode())?.fromSlot, 860n)
  const replaying = open()
  assert.ok(replaying.send(FILTERS))
  replaying.onData({ slot: 999, messages: 3, hasUnread: false })
  assert.ok(replaying.send({ ...FILTERS, fromSlot: 500n }))
  assert.equal((await replaying.requestAtNextNode())?.fromSlot, 500n)
})

test('a request that is too large to be kept does not move the position of the stream', async () => {
  const { onRequest, onData, requestAtNextNode } = open()
  const verdict = { ok: true, isPing: false, fromSlot: undefined } as Parameters<typeof onRequest>[1]
  const small = encodeMessage(SubscribeRequestSchema, FILTERS)
  onRequest(small, verdict)
  onData({ slot: 800, messages: 1, hasUnread: false })
  onRequest(Buffer.alloc(300 * 1024), verdict)
  onRequest(small, verdict)
  assert.equal((await requestAtNextNode())?.fromSlot, 760n)
})

test('a stream may move six times in one outage, and again once it has stayed at a node for a minute', async () => {
  const { clock, send, requestAtNextNode } = open()
  assert.ok(send(FILTERS))
  const move = async () => {
    const moving = requestAtNextNode()
    clock.advance(2000)
    return (await moving) !== undefined
  }
  for (const outage of [1, 2]) {
    for (let at = 0; at < 6; at++) assert.ok(await move(), `move ${at} of outage ${outage}`)
    if (outage === 1) clock.advance(60_000)
  }
  assert.equal(await move(), false)
})
