import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createRandom } from '../../../test/support/process/property.ts'
import { createManualClock } from '../../core/clock.ts'
import { createMessageReader, frameMessage } from '../../platform/grpc/framing.ts'
import { GrpcCode } from '../../platform/grpc/status.ts'
import type { GrpcEnd, GrpcStream } from '../../platform/grpc/stream.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import { type SubscribeRequest, SubscribeRequestSchema, SubscribeUpdateSchema } from '../../solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../solana/geyser/protobuf.ts'
import type { TableAccount } from './lookup-tables.ts'
import { createLookupTableSource } from './node-lookup-tables.ts'

const PROGRAM = decodeBase58('AddressLookupTab1e1111111111111111111111111')
const keyOf = (n: number): Uint8Array => new Uint8Array(32).fill(n)

/** A node whose stream the test feeds and ends. */
function createNode() {
  const clock = createManualClock()
  const asked: string[][] = []
  const accounts: TableAccount[] = []
  const requests: SubscribeRequest[] = []
  const node = {
    ...{ slot: 10, hasStreams: true, opened: 0, cancelled: 0, data: 'AQ==', owner: encodeBase58(PROGRAM) },
    ...{ isShort: false, holdsPongs: false },
  }
  const pongs: number[] = []
  let onData: ((bytes: Buffer, release: () => void) => void) | undefined
  let onEnd: ((end: GrpcEnd) => void) | undefined
  const settle = async () => {
    for (let turn = 0; turn < 20; turn++) await nextTurn()
  }
  function open(): GrpcStream {
    node.opened += 1
    const reader = createMessageReader({ messageBytesMax: 1 << 20 }, (message) => {
      const request = decodeMessage(SubscribeRequestSchema, message)
      assert.ok(request !== undefined)
      requests.push(request)
      if (request.ping === undefined) return
      if (node.holdsPongs) pongs.push(request.ping.id)
      else send({ case: 'pong', value: { id: request.ping.id } })
    })
    return {
      write: (frames) => reader.push(frames) === undefined,
      onWritable: () => undefined,
      halfClose: () => undefined,
      cancel() {
        node.cancelled += 1
        end(GrpcCode.cancelled)
      },
      onHeaders: () => undefined,
      onData: (listener) => void (onData = listener),
      pause: () => undefined,
      resume: () => undefined,
      onEnd: (listener) => void (onEnd = listener),
    }
  }
  type Update = NonNullable<Parameters<typeof encodeMessage<typeof SubscribeUpdateSchema>>[1]['updateOneof']>
  function send(updateOneof: Update): void {
    const frames = frameMessage(encodeMessage(SubscribeUpdateSchema, { updateOneof }))
    onData?.(frames, () => undefined)
    // As a connection does, which reads into the same buffer again.
    frames.fill(0xff)
  }
  function end(code: number): void {
    const ended = onEnd
    onEnd = undefined
    onData = undefined
    ended?.({ status: { code }, isFromServer: true })
  }
  const source = createLookupTableSource()
  source.onAccounts((some) => void accounts.push(...some))
  const following = source.follow(
    {
      async callNode(method, params) {
        assert.equal(method, 'getMultipleAccounts')
        const [addresses] = params as [string[]]
        asked.push(addresses)
        const value = addresses.map(() => ({ owner: node.owner, data: [node.data, 'base64'] }))
        return { context: { slot: node.slot }, value: node.isShort ? value.slice(1) : value }
      },
      open: async () => (node.hasStreams ? open() : undefined),
    },
    { clock, random: { ...createRandomSource() }, log: silentLogger },
  )
  return {
    ...{ clock, node, asked, accounts, requests, pongs, source, send, end, settle },
    takeAsked: () => asked.splice(0).flat(),
    [Symbol.dispose]: () => following[Symbol.dispose](),
  }
}

function createRandomSource() {
  const random = createRandom(1)
  return { float: () => random(1000) / 1000, bytes: (count: number) => new Uint8Array(count) }
}

const PING = { case: 'ping', value: {} } as const
const followedOf = (request: SubscribeRequest | undefined) => request?.accounts['tables']?.account ?? []

test('a table is loaded at once, followed by the subscription, and read again when the node has applied it', async () => {
  using rig = createNode()
  await rig.settle()
  rig.send(PING)
  await rig.settle()
  rig.takeAsked()
  rig.source.change({ wanted: [keyOf(1)], dropped: [] })
  await rig.settle()
  assert.deepEqual(rig.takeAsked(), [encodeBase58(keyOf(1)), encodeBase58(keyOf(1))], 'at once, and after the pong')
  assert.deepEqual(followedOf(rig.requests.at(-2)), [encodeBase58(keyOf(1))])

  rig.accounts.length = 0
  const account = { pubkey: keyOf(1), owner: PROGRAM, data: Uint8Array.of(1, 2, 3) }
  rig.send({ case: 'account', value: { account, slot: 20n } })
  rig.send({ case: 'account', value: { account: { ...account, pubkey: keyOf(9) }, slot: 20n } })
  rig.send({ case: 'account', value: { account: { ...account, owner: keyOf(0) }, slot: 21n } })
  assert.deepEqual(
    rig.accounts.map(({ key, data, slot }) => [key[0], data?.join(), slot]),
    [
      [1, '1,2,3', 20],
      [1, undefined, 21],
    ],
    'a table that is not followed is ignored, and one of another program is closed',
  )
  rig.clock.advance(5000)
  await rig.settle()
  rig.send(PING)
  assert.deepEqual(rig.takeAsked(), [], 'it is not polled')
  rig.source.change({ wanted: [], dropped: [keyOf(1)] })
  await rig.settle()
  assert.deepEqual(followedOf(rig.requests.at(-2)), [])
})

test('after a loss of the stream all tables are read again', async () => {
  using rig = createNode()
  rig.source.change({ wanted: [keyOf(1), keyOf(2)], dropped: [] })
  await rig.settle()
  rig.send(PING)
  await rig.settle()
  rig.takeAsked()
  rig.end(GrpcCode.unavailable)
  rig.clock.advance(300)
  await rig.settle()
  assert.equal(rig.node.opened, 2)
  rig.send(PING)
  await rig.settle()
  assert.deepEqual(rig.takeAsked(), [keyOf(1), keyOf(2)].map(encodeBase58))
})

test('without a stream tables are polled, and a node without the method is asked for it again a minute later', async () => {
  using rig = createNode()
  rig.node.hasStreams = false
  rig.source.change({ wanted: [keyOf(1)], dropped: [] })
  await rig.settle()
  rig.node.hasStreams = true
  rig.takeAsked()
  rig.clock.advance(5000)
  await rig.settle()
  assert.deepEqual(rig.takeAsked(), [encodeBase58(keyOf(1))])
  const { opened } = rig.node
  assert.ok(opened > 0)
  rig.end(GrpcCode.unimplemented)
  rig.clock.advance(55_000)
  await rig.settle()
  assert.equal(rig.node.opened, opened)
  assert.ok(rig.takeAsked().length > 0, 'it is still polled')
  rig.clock.advance(6000)
  await rig.settle()
  assert.equal(rig.node.opened, opened + 1)
})

test('a response that is not one of getMultipleAccounts changes nothing, and a stream that is silent is opened again', async () => {
  using rig = createNode()
  await rig.settle()
  rig.send(PING)
  await rig.settle()
  rig.node.slot = 'x' as unknown as number
  rig.source.change({ wanted: [keyOf(1)], dropped: [] })
  await rig.settle()
  assert.deepEqual(rig.accounts, [])
  rig.clock.advance(41_000)
  await rig.settle()
  assert.equal(rig.node.opened, 2)
})

test('more tables than a subscription has are polled', async () => {
  using rig = createNode()
  await rig.settle()
  rig.send(PING)
  await rig.settle()
  const keys = Array.from({ length: 10_001 }, (_, n) => {
    const key = keyOf(7)
    new DataView(key.buffer).setUint32(0, n)
    return key
  })
  rig.source.change({ wanted: keys, dropped: [] })
  for (let turn = 0; turn < 30; turn++) await rig.settle()
  assert.equal(followedOf(rig.requests.at(-2)).length, 10_000)
  rig.takeAsked()
  rig.clock.advance(5000)
  await rig.settle()
  assert.deepEqual(rig.takeAsked(), [encodeBase58(keys[10_000] as Uint8Array)])
})

test('an account of another program is no table, and a response of another length is none', async () => {
  using rig = createNode()
  rig.node.owner = encodeBase58(keyOf(5))
  rig.source.change({ wanted: [keyOf(1)], dropped: [] })
  await rig.settle()
  assert.deepEqual(rig.accounts, [{ key: keyOf(1), slot: 10, data: undefined }])
  rig.node.isShort = true
  rig.source.change({ wanted: [keyOf(2), keyOf(3)], dropped: [] })
  await rig.settle()
  assert.equal(rig.accounts.length, 1)
})

test('tables are read 100 at a time, and all of them again each minute', async () => {
  using rig = createNode()
  await rig.settle()
  rig.send(PING)
  await rig.settle()
  rig.asked.length = 0
  const keys = Array.from({ length: 250 }, (_, n) => keyOf(n))
  rig.source.change({ wanted: keys, dropped: [] })
  await rig.settle()
  assert.deepEqual(
    rig.asked.map(({ length }) => length).sort((a, b) => a - b),
    [50, 50, 100, 100, 100, 100],
    'at once, and when the node follows them',
  )
  assert.deepEqual(new Set(rig.takeAsked()), new Set(keys.map(encodeBase58)))
  for (let ms = 0; ms < 60_000; ms += 5000) {
    assert.deepEqual(rig.takeAsked(), [], 'the subscription covers them')
    rig.send(PING)
    rig.clock.advance(5000)
    await rig.settle()
  }
  assert.deepEqual(rig.takeAsked(), keys.map(encodeBase58))
})

test('a request is sent only for other tables, one without tables names none, and a ping of the node is returned', async () => {
  using rig = createNode()
  await rig.settle()
  rig.send(PING)
  await rig.settle()
  assert.ok(
    rig.requests.every(({ accounts }) => Object.keys(accounts).length === 0),
    'no filter that matches all',
  )
  const { length } = rig.requests
  rig.source.change({ wanted: [], dropped: [keyOf(1)] })
  assert.equal(rig.requests.length, length)
  rig.send(PING)
  assert.deepEqual(rig.requests.at(-1)?.ping?.id, 0)
  rig.source.change({ wanted: [keyOf(1)], dropped: [] })
  rig.source.clear()
  assert.deepEqual(followedOf(rig.requests.at(-2)), [])
})

test('tables are read when the node confirms the last request, not one before it', async () => {
  using rig = createNode()
  await rig.settle()
  rig.send(PING)
  await rig.settle()
  rig.node.holdsPongs = true
  rig.source.change({ wanted: [keyOf(1)], dropped: [] })
  rig.source.change({ wanted: [keyOf(2)], dropped: [] })
  await rig.settle()
  rig.takeAsked()
  const [first, second] = rig.pongs
  rig.send({ case: 'pong', value: { id: first ?? 0 } })
  await rig.settle()
  assert.deepEqual(rig.takeAsked(), [])
  rig.send({ case: 'pong', value: { id: second ?? 0 } })
  await rig.settle()
  assert.deepEqual(rig.takeAsked(), [keyOf(1), keyOf(2)].map(encodeBase58))
})

test('after the end nothing is read, published or opened, and the stream is cancelled', async () => {
  const rig = createNode()
  await rig.settle()
  rig.send(PING)
  await rig.settle()
  rig.source.change({ wanted: [keyOf(1)], dropped: [] })
  rig[Symbol.dispose]()
  await rig.settle()
  const { opened, cancelled } = rig.node
  assert.deepEqual([rig.accounts, cancelled], [[], 1], 'a response that was under way')
  rig.takeAsked()
  rig.clock.advance(120_000)
  await rig.settle()
  assert.deepEqual([rig.takeAsked(), rig.node.opened], [[], opened])

  const early = createNode()
  early[Symbol.dispose]()
  await early.settle()
  assert.deepEqual([early.node.opened, early.node.cancelled], [1, 1], 'a stream that was being opened')
  assert.equal(early.clock.pendingTimers(), 0)
})

test('a stream that ends after it was open is opened again soon, however often it has failed before', async () => {
  using rig = createNode()
  await rig.settle()
  for (let attempt = 0; attempt < 8; attempt++) {
    rig.end(GrpcCode.unavailable)
    rig.clock.advance(15_000)
    await rig.settle()
  }
  rig.send(PING)
  const { opened } = rig.node
  rig.end(GrpcCode.unavailable)
  rig.clock.advance(250)
  await rig.settle()
  assert.equal(rig.node.opened, opened + 1)
})
