import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { MOVED_ERROR } from '../../src/gateway/geyser/seen-banks.ts'
import type { GrpcCall } from '../../src/platform/grpc/call.ts'
import { GrpcCode } from '../../src/platform/grpc/status.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import {
  SlotStatus,
  type SubscribeRequest,
  SubscribeRequestSchema,
  type SubscribeUpdate,
  SubscribeUpdateSchema,
} from '../../src/solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../src/solana/geyser/protobuf.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { type FaultProxy, startFaultProxy } from '../faults/fault-proxy.ts'
import { type GrpcGateway, openStream, SUBSCRIBE, startGrpcGateway, tokenMetadata } from '../support/gateway/grpc.ts'

type Request = Parameters<typeof encodeMessage<typeof SubscribeRequestSchema>>[1]
const request = (init: Request) => encodeMessage(SubscribeRequestSchema, init)
const update = (slot: number) =>
  encodeMessage(SubscribeUpdateSchema, { updateOneof: { case: 'slot', value: { slot: BigInt(slot) } } })
const slotOf = (bytes: Uint8Array) => {
  const reported = decodeMessage(SubscribeUpdateSchema, bytes)?.updateOneof
  return reported?.case === 'slot' ? Number(reported.value.slot) : undefined
}

const bankUpdate = (slot: number, bankId: bigint, status: SlotStatus = SlotStatus.SLOT_PROCESSED) =>
  encodeMessage(SubscribeUpdateSchema, { updateOneof: { case: 'slot', value: { slot: BigInt(slot), status, bankId } } })
const transactionUpdate = (slot: number, bankId: bigint) =>
  encodeMessage(SubscribeUpdateSchema, {
    updateOneof: { case: 'transaction', value: { slot: BigInt(slot), bankId, transaction: { index: 1n } } },
  })
const deadOf = (bytes: Uint8Array) => {
  const { filters, updateOneof } = decodeMessage(SubscribeUpdateSchema, bytes) as SubscribeUpdate
  if (updateOneof.case !== 'slot' || updateOneof.value.status !== SlotStatus.SLOT_DEAD) return undefined
  const { slot, bankId, deadError } = updateOneof.value
  return { filters, slot: Number(slot), bankId, deadError }
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
    await until('the slot of the nodes is known', () => on.upstreams.shared.bestSlot === BEST_SLOT)
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

  it('moves to the other node when its own is drained, where the plan has grpcResume, and stays otherwise', async () => {
    const stays = await begin({})
    const moves = await begin({ grpcResume: true })
    await until('both are open', () => served.length === 2 && served.every(({ requests }) => requests.length === 1))
    const before = served.map(({ node }) => node)
    for (const at of new Set(before)) {
      on.upstreams.drain(`n${at}`)
      if (at !== before[1]) on.upstreams.undrain(`n${at}`)
    }
    await until('it is at the other node', () => served.length === 3 && last().requests.length === 1)
    assert.notEqual(last().node, before[1])
    last().call.send(update(1001))
    await until('it continues', () => moves.slots().includes(1001))
    served[0]?.call.send(update(1002))
    await until('the other one continues too', () => stays.slots().includes(1002))
    moves.call.cancel()
    stays.call.cancel()
  })

  it('moves to the other node when its own refuses the credential of the gateway, or lacks the method', async () => {
    for (const code of [GrpcCode.unauthenticated, GrpcCode.permissionDenied, GrpcCode.unimplemented]) {
      const from = served.length
      const stream = await begin({ grpcResume: true })
      await until('its node has the request', () => served[from]?.requests.length === 1)
      served[from]?.call.end({ code, message: 'refused' })
      await until('the other node has the request', () => served[from + 1]?.requests.length === 1)
      assert.notEqual(served[from + 1]?.node, served[from]?.node)
      stream.call.cancel()
    }
  })

  it('opens at the other node when a limit of the first refuses it', async () => {
    let refused = 0
    for (const node of nodes) {
      const serve = node.onGrpcCall
      node.onGrpcCall = (call) => {
        if (refused++ > 0) return serve(call)
        // Once the gateway has the request too.
        call.onMessage(() => call.end({ code: GrpcCode.resourceExhausted, message: 'max subscription limit exceeded' }))
      }
    }
    const stream = await begin({ grpcResume: true })
    last().call.send(update(999))
    await until('it arrived', () => stream.messages.length === 1)
    assert.deepEqual([refused, stream.used()], [2, 1])
    stream.call.cancel()
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
    assert.deepEqual([asked?.commitment, asked?.fromSlot], [1, BigInt(999 - 40)])
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

  it('resumes an unfinished replay shortly before where it stopped', async () => {
    const stream = await begin({ grpcResume: true }, { slots: { s: {} }, fromSlot: 500n })
    last().call.send(update(620))
    await until('it arrived', () => stream.messages.length === 1)
    cut(last())
    await until('the other node has the request', () => served.length === 2 && last().requests.length === 1)
    assert.equal(last().requests[0]?.fromSlot, 580n)
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

  it('declares banks of the lost node dead that are not final, before the first update of the next node', async () => {
    const stream = await begin({ grpcResume: true }, { slots: { s: {}, other: {} }, transactions: { t: {} } })
    const wide = 2n ** 63n + 1n
    const { SLOT_FINALIZED, SLOT_DEAD } = SlotStatus
    const sent = [
      ...[bankUpdate(997, 1n), bankUpdate(997, 1n, SLOT_FINALIZED)],
      ...[transactionUpdate(998, 2n), transactionUpdate(998, 3n), bankUpdate(998, 3n, SLOT_DEAD)],
      ...[transactionUpdate(999, wide), update(999)],
    ]
    for (const message of sent) last().call.send(message)
    await until('they arrived', () => stream.messages.length === sent.length)
    cut(last())
    await until('the other node has the request', () => served.length === 2 && last().requests.length === 1)
    last().call.send(bankUpdate(998, 71n))
    await until('the stream continues', () => stream.messages.length === sent.length + 3)
    const ended = stream.messages.slice(sent.length).map(deadOf)
    const moved = { filters: ['s', 'other'], deadError: MOVED_ERROR }
    assert.deepEqual(ended, [{ ...moved, slot: 998, bankId: 2n }, { ...moved, slot: 999, bankId: wide }, undefined])
    assert.equal(stream.used(), 1)
    // A second move concerns the banks of the second node only.
    cut(last())
    await until('the next node has the request', () => served.length === 3 && last().requests.length === 1)
    last().call.send(bankUpdate(998, 2n))
    await until('the stream continues again', () => stream.messages.length === sent.length + 5)
    assert.deepEqual(deadOf(stream.messages.at(-2) as Uint8Array), { ...moved, slot: 998, bankId: 71n })
    last().call.end({ code: GrpcCode.internal, message: 'lagged to send an update' })
    const { metadata } = await stream.ended
    assert.deepEqual(metadata.get('x-sluice-resumed-from-slots'), ['959,959'])
  })

  it('sends nothing of its own to a client without a slots filter, and lists the move in the trailers and the connection', async () => {
    const stream = await begin({ grpcResume: true }, { transactions: { t: {} } })
    last().call.send(transactionUpdate(998, 2n))
    await until('it arrived', () => stream.messages.length === 1)
    assert.deepEqual(
      on.connections.of(stream.id).map(({ moves }) => moves),
      [0],
    )
    cut(last())
    await until('the other node has the request', () => served.length === 2 && last().requests.length === 1)
    last().call.send(transactionUpdate(998, 71n))
    await until('the stream continues', () => stream.messages.length === 2)
    assert.deepEqual(
      on.connections.of(stream.id).map(({ moves }) => moves),
      [1],
    )
    last().call.end({ code: GrpcCode.internal, message: 'lagged to send an update' })
    const { metadata } = await stream.ended
    assert.deepEqual(metadata.get('x-sluice-resumed-from-slots'), ['958'])
  })

  it('sends nothing of its own after a node that does not name banks', async () => {
    const stream = await begin({ grpcResume: true })
    last().call.send(update(999))
    await until('it arrived', () => stream.messages.length === 1)
    cut(last())
    await until('the other node has the request', () => served.length === 2 && last().requests.length === 1)
    last().call.send(update(1000))
    await until('the stream continues', () => stream.messages.length === 2)
    assert.deepEqual(stream.slots(), [999, 1000])
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
