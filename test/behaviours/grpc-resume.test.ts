import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { GrpcCall } from '../../src/platform/grpc/call.ts'
import { GrpcCode } from '../../src/platform/grpc/status.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { type SubscribeRequest, SubscribeRequestSchema, SubscribeUpdateSchema } from '../../src/solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../src/solana/geyser/protobuf.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { type FaultProxy, startFaultProxy } from '../faults/fault-proxy.ts'
import { type GrpcGateway, openStream, SUBSCRIBE, startGrpcGateway, tokenMetadata } from '../support/grpc-gateway.ts'

type Request = Parameters<typeof encodeMessage<typeof SubscribeRequestSchema>>[1]
const request = (init: Request) => encodeMessage(SubscribeRequestSchema, init)
const update = (slot: number) =>
  encodeMessage(SubscribeUpdateSchema, { updateOneof: { case: 'slot', value: { slot: BigInt(slot) } } })
const slotOf = (bytes: Uint8Array) => {
  const reported = decodeMessage(SubscribeUpdateSchema, bytes)?.updateOneof
  return reported?.case === 'slot' ? Number(reported.value.slot) : undefined
}

const BEST_SLOT = 1000

type Served = { readonly node: number; readonly call: GrpcCall; readonly requests: SubscribeRequest[] }

describe('a stream whose node is lost', () => {
  let nodes: FakeNode[]
  let proxies: FaultProxy[]
  let on: GrpcGateway
  let served: Served[]

  beforeEach(async () => {
    served = []
    nodes = await Promise.all([startFakeNode(BEST_SLOT), startFakeNode(BEST_SLOT)])
    proxies = await Promise.all(
      nodes.map((node) => startFaultProxy({ target: { host: '127.0.0.1', port: node.ports.grpc } })),
    )
    nodes.forEach((node, at) => {
      node.onGrpcCall = (call) => {
        const one: Served = { node: at, call, requests: [] }
        served.push(one)
        call.sendHeaders()
        call.onMessage((message) => {
          const read = decodeMessage(SubscribeRequestSchema, message)
          if (read !== undefined) one.requests.push(read)
        })
      }
    })
    on = await startGrpcGateway(
      nodes.map((node, at) => ({ name: `n${at}`, rpc: node.rpc, grpc: `http://127.0.0.1:${proxies[at]?.port}` })),
      { sweepMs: 20, stallMs: 400 },
    )
    await until('the slot of the nodes is known', () => on.upstreams.of(undefined).bestSlot === BEST_SLOT)
  })
  afterEach(async () => {
    await on[Symbol.asyncDispose]()
    for (const proxy of proxies) await proxy[Symbol.asyncDispose]()
    for (const node of nodes) await node[Symbol.asyncDispose]()
  })

  async function begin(overrides: object, first: Request = { slots: { s: {} } }) {
    const { token, id } = await on.gateway.subscribe({ overrides })
    const stream = openStream(on.client, SUBSCRIBE, tokenMetadata(token))
    stream.send(request(first))
    await until('a node has the request', () => served[0]?.requests.length === 1)
    const caller = on.gateway.access.authenticate({ token }, 'bundle', Date.now())
    assert.ok(caller.ok)
    const slots = () => stream.messages.map(slotOf)
    return { ...stream, id, slots, used: () => on.gateway.access.quota(caller).month.used }
  }

  /** Closes the connection of the node that serves this call. */
  function cut({ node }: Served): void {
    proxies[node]?.resetConnections()
  }

  const last = () => served.at(-1) as Served

  it('ends with UNAVAILABLE and the last slot where the plan has no grpcResume', async () => {
    const stream = await begin({})
    last().call.send(update(998))
    await until('it arrived', () => stream.messages.length === 1)
    cut(last())
    const { code, details } = await stream.ended
    assert.deepEqual([code, details], [GrpcCode.unavailable, 'the node behind this call is lost; last slot seen: 998'])
    assert.equal(served.length, 1)
  })

  it('resumes at the other node with the same filters, from a slot early enough to miss nothing, and is not charged', async () => {
    const stream = await begin({ grpcResume: true })
    stream.send(request({ slots: { later: {} }, commitment: 1 }))
    await until('the node has the change', () => served[0]?.requests.length === 2)
    const used = stream.used()
    last().call.send(update(999))
    await until('it arrived', () => stream.messages.length === 1)
    const first = last()
    cut(first)
    await until('the other node has the request', () => served.length === 2 && last().requests.length === 1)
    assert.notEqual(last().node, first.node)
    const [asked] = last().requests
    assert.deepEqual(Object.keys(asked?.slots ?? {}), ['later'])
    assert.deepEqual([asked?.commitment, asked?.fromSlot], [1, BigInt(BEST_SLOT - 40)])
    for (const slot of [999, 1000, 1001]) last().call.send(update(slot))
    await until('the stream continues', () => stream.messages.length === 4)
    assert.deepEqual(stream.slots(), [999, 999, 1000, 1001])
    assert.equal(stream.used(), used)
    // Filters can still be changed, and invalid ones are still refused.
    stream.send(request({ slots: { s: {} } }))
    await until('the new node has the change', () => last().requests.length === 2)
    assert.equal(stream.used(), used + 1)
    const permits = on.gateway.access.permits.taken(stream.id).grpcStreams
    assert.equal(permits, 1)
    assert.equal(on.registry.value('sluice_bundle_grpc_resumes_total', { result: 'resumed' }), 1)
    stream.call.cancel()
  })

  it('resumes an unfinished replay where it stopped', async () => {
    const stream = await begin({ grpcResume: true }, { slots: { s: {} }, fromSlot: 500n })
    last().call.send(update(620))
    await until('it arrived', () => stream.messages.length === 1)
    cut(last())
    await until('the other node has the request', () => served.length === 2 && last().requests.length === 1)
    assert.equal(last().requests[0]?.fromSlot, 620n)
    stream.call.cancel()
  })

  it('resumes when its node is silent or shuts down', async () => {
    const stream = await begin({ grpcResume: true })
    last().call.send(update(999))
    await until('silence is noticed', () => served.length === 2 && last().requests.length === 1)
    last().call.send(update(1000))
    last().call.end({ code: GrpcCode.unavailable, message: 'server is shutting down try again later' })
    await until('the next node has the request', () => served.length === 3 && last().requests.length === 1)
    last().call.send(update(1001))
    await until('the stream continues', () => stream.messages.length === 3)
    assert.deepEqual(stream.slots(), [999, 1000, 1001])
    stream.call.cancel()
  })

  it('ends with the last slot when the next node no longer has these slots', async () => {
    const stream = await begin({ grpcResume: true })
    last().call.send(update(998))
    await until('it arrived', () => stream.messages.length === 1)
    const first = last()
    cut(first)
    await until('the other node has the request', () => served.length === 2 && last().requests.length === 1)
    last().call.end({ code: 11, message: 'broadcast from 960 is not available, last available: 970' })
    const { code, details } = await stream.ended
    assert.deepEqual([code, details], [GrpcCode.unavailable, 'the node behind this call is lost; last slot seen: 998'])
  })

  it('ends when no node is available', async () => {
    const stream = await begin({ grpcResume: true })
    last().call.send(update(998))
    await until('it arrived', () => stream.messages.length === 1)
    for (const proxy of proxies) await proxy.disable()
    const { code, details } = await stream.ended
    assert.equal(code, GrpcCode.unavailable)
    assert.match(details, /last slot seen: 998$/)
    assert.equal(on.registry.value('sluice_bundle_grpc_resumes_total', { result: 'ended' }), 1)
  })

  it('ends with the status of the node, unchanged, where it does not mean a lost node', async () => {
    const stream = await begin({ grpcResume: true })
    last().call.send(update(998))
    await until('it arrived', () => stream.messages.length === 1)
    last().call.end({ code: GrpcCode.internal, message: 'lagged to send an update' })
    const { code, details } = await stream.ended
    assert.deepEqual([code, details], [GrpcCode.internal, 'lagged to send an update'])
    assert.equal(on.registry.value('sluice_bundle_slow_consumers_total', { interface: 'grpc' }), 1)
  })
})
