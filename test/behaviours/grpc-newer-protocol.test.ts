import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { frameMessage } from '../../src/platform/grpc/framing.ts'
import { GrpcCode } from '../../src/platform/grpc/status.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { SubscribeDeshredRequestSchema, SubscribeRequestSchema } from '../../src/solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../src/solana/geyser/protobuf.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import {
  type GrpcGateway,
  openStream,
  PING,
  SUBSCRIBE,
  startGrpcGateway,
  tokenMetadata,
  unary,
} from '../support/gateway/grpc.ts'

const DESHRED = '/geyser.Geyser/SubscribeDeshred'
const GET_SLOT = '/geyser.Geyser/GetSlot'

/** A bytes field: the tag is a varint of at most two bytes. */
function field(number: number, ...content: Uint8Array[]): Buffer {
  const body = Buffer.concat(content)
  const tag = number * 8 + 2
  return Buffer.concat([
    Buffer.from(tag < 128 ? [tag] : [(tag % 128) | 128, tag >> 7]),
    Buffer.from([body.length]),
    body,
  ])
}
const text = (number: number, value: string) => field(number, Buffer.from(value))
const hex = (value: string) => Buffer.from(value, 'hex')
const request = (init: Parameters<typeof encodeMessage<typeof SubscribeRequestSchema>>[1]) =>
  encodeMessage(SubscribeRequestSchema, init)

const SLOTS = request({ slots: { s: {} } })
/** Requests of a newer protocol than the one here, each with the field that is not known. */
const NEWER: readonly (readonly [path: string, request: Buffer, field: string])[] = [
  [SUBSCRIBE, Buffer.concat([SLOTS, field(13, text(1, 'f'))]), '13 of SubscribeRequest'],
  [SUBSCRIBE, Buffer.concat([SLOTS, field(99, text(1, 'f'))]), '99 of SubscribeRequest'],
  [SUBSCRIBE, field(2, text(1, 's'), field(2, hex('4801'))), '9 of SubscribeRequestFilterSlots'],
  [DESHRED, Buffer.concat([field(3, text(1, 's')), field(4, text(1, 'f'))]), '4 of SubscribeDeshredRequest'],
  [DESHRED, field(3, text(1, 's'), field(2, hex('4801'))), '9 of SubscribeRequestFilterSlots'],
]

/** The gateway between clients and nodes of a newer protocol. */
describe('geyser requests and updates of a newer protocol', () => {
  let node: FakeNode
  let on: GrpcGateway
  let atNode: Buffer[] = []
  let updates: Buffer[] = []
  before(async () => {
    node = await startFakeNode()
    node.onGrpcCall = (call) => {
      call.sendHeaders()
      const isUnary = call.path === PING || call.path === GET_SLOT
      call.onMessage((message) => {
        atNode.push(Buffer.from(message))
        for (const update of updates) call.writePieces([frameMessage(update)], () => {})
        if (isUnary) {
          call.writePieces([frameMessage(Buffer.alloc(0))], () => {})
          call.end({ code: GrpcCode.ok })
        }
      })
    }
    on = await startGrpcGateway([{ name: 'fake', grpc: node.grpc }])
  })
  beforeEach(() => {
    atNode = []
    updates = []
  })
  after(async () => {
    await on[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  function usedBy(token: string): number {
    const caller = on.gateway.access.authenticate({ token }, 'bundle', Date.now())
    assert.ok(caller.ok)
    return on.gateway.access.quota(caller).month.used
  }

  it('a plan with slots only refuses block footers by name and neither forwards nor charges them', async () => {
    const { token } = await on.gateway.subscribe({ overrides: { grpcKinds: ['slots'] } })
    const stream = openStream(on.client, SUBSCRIBE, tokenMetadata(token))
    stream.send(request({ slots: { s: {} }, blockFooter: { feet: {} } }))
    const { code, details } = await stream.ended
    assert.equal(code, GrpcCode.invalidArgument)
    assert.match(details, /block_footer "feet" is of a kind the plan does not have; grpcKinds allows slots$/)
    assert.equal(atNode.length, 0)
    assert.equal(usedBy(token), 0)
  })

  it('a plan without restrictions, and one with the kind, subscribe to block footers', async () => {
    for (const overrides of [{}, { grpcKinds: ['block_footer'] as const }]) {
      atNode = []
      const { token } = await on.gateway.subscribe({ overrides })
      const stream = openStream(on.client, SUBSCRIBE, tokenMetadata(token))
      const footers = request({ blockFooter: { feet: {} } })
      stream.send(footers)
      await until('it is at the node', () => atNode.length === 1)
      assert.deepEqual(atNode, [Buffer.from(footers)])
      stream.call.cancel()
    }
  })

  it('refuses an unknown field on a plan with slots only, of every method', async () => {
    const { token } = await on.gateway.subscribe({ overrides: { grpcKinds: ['slots'] } })
    for (const [path, bytes, where] of NEWER) {
      const stream = openStream(on.client, path, tokenMetadata(token))
      stream.send(bytes)
      const { code, details } = await stream.ended
      assert.equal(code, GrpcCode.invalidArgument, details)
      assert.match(details, new RegExp(`field ${where} is not known here and could select updates, which grpcKinds`))
    }
    const { error } = await unary(on.client, GET_SLOT, field(9, text(1, 'f')), tokenMetadata(token))
    assert.match(String(error?.details), /field 9 of GetSlotRequest is not known here.*knownFields/)
    assert.deepEqual([atNode.length, usedBy(token)], [0, 0])
    const known = await unary(on.client, GET_SLOT, hex('0801'), tokenMetadata(token))
    assert.equal(known.error, null)
  })

  it('refuses an unknown field in a later request of an open stream', async () => {
    const { token } = await on.gateway.subscribe({ overrides: { grpcKinds: ['slots'] } })
    const stream = openStream(on.client, SUBSCRIBE, tokenMetadata(token))
    stream.send(SLOTS)
    await until('the first is at the node', () => atNode.length === 1)
    stream.send(Buffer.concat([SLOTS, field(13, text(1, 'f'))]))
    const { code, details } = await stream.ended
    assert.deepEqual([code, atNode.length], [GrpcCode.invalidArgument, 1])
    assert.match(details, /field 13 of SubscribeRequest/)
  })

  it('passes an unknown field on, unchanged, on a plan that does not restrict kinds', async () => {
    const { token } = await on.gateway.subscribe({ overrides: { unitsPerSecond: null, grpcStreams: null } })
    for (const [path, bytes] of NEWER) {
      atNode = []
      const stream = openStream(on.client, path, tokenMetadata(token))
      stream.send(bytes)
      await until('it is at the node', () => atNode.length === 1)
      assert.deepEqual(atNode, [bytes])
      stream.call.cancel()
    }
    atNode = []
    assert.equal((await unary(on.client, GET_SLOT, field(9, text(1, 'f')), tokenMetadata(token))).error, null)
    assert.deepEqual(atNode, [field(9, text(1, 'f'))])
  })

  it('passes updates of unknown kinds and with unknown fields byte for byte', async () => {
    const slot = field(1, Buffer.from('s'))
    updates = [
      Buffer.concat([slot, field(3, hex('08e80728013002'), field(99, Buffer.from('more')))]),
      Buffer.concat([slot, field(50, hex('0801'), text(2, 'a new kind'))]),
      Buffer.concat([field(99, Buffer.from('first')), slot, field(12, hex('08e8071007'))]),
      // An unknown update inside an unknown update, and an empty one.
      field(50, field(99, field(50))),
      Buffer.alloc(0),
    ]
    for (const overrides of [{}, { grpcKinds: ['slots'] as const }, { grpcResume: true }]) {
      const { token } = await on.gateway.subscribe({ overrides })
      const stream = openStream(on.client, SUBSCRIBE, tokenMetadata(token))
      stream.send(SLOTS)
      await until('all updates have arrived', () => stream.messages.length === updates.length)
      assert.deepEqual(stream.messages, updates)
      stream.call.cancel()
    }
    const { token } = await on.gateway.subscribe({})
    const deshred = openStream(on.client, DESHRED, tokenMetadata(token))
    deshred.send(encodeMessage(SubscribeDeshredRequestSchema, { slots: { s: {} } }))
    await until('all updates have arrived', () => deshred.messages.length === updates.length)
    assert.deepEqual(deshred.messages, updates)
    deshred.call.cancel()
  })
})
