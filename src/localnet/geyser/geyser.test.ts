import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:http2'
import { test } from 'node:test'
import { Client, credentials, Metadata, type StatusObject } from '@grpc/grpc-js'
import { account, address } from '../../../test/support/solana/chain-double.ts'
import { type Call, type Request, show, startGeyserNode as start } from '../../../test/support/solana/geyser-node.ts'
import {
  GetBlockHeightRequestSchema,
  GetBlockHeightResponseSchema,
  GetLatestBlockhashRequestSchema,
  GetLatestBlockhashResponseSchema,
  GetSlotRequestSchema,
  GetSlotResponseSchema,
  GetVersionRequestSchema,
  GetVersionResponseSchema,
  IsBlockhashValidRequestSchema,
  IsBlockhashValidResponseSchema,
  PingRequestSchema,
  PongResponseSchema,
  SubscribeReplayInfoRequestSchema,
  SubscribeReplayInfoResponseSchema,
  SubscribeRequestSchema,
} from '../../solana/gen/geyser_pb.ts'
import { HealthCheckRequestSchema, HealthCheckResponseSchema } from '../../solana/gen/health_pb.ts'
import { encodeMessage } from '../../solana/geyser/protobuf.ts'

const EVERYTHING: Request = {
  accounts: { a: {} },
  slots: { s: { interslotUpdates: true } },
  transactions: { t: {} },
  transactionsStatus: { ts: {} },
  blocks: { b: { includeAccounts: true } },
  blocksMeta: { m: {} },
  entry: { e: {} },
}

function content(node: Awaited<ReturnType<typeof start>>) {
  return {
    transactions: [
      node.transaction({ writes: [[address('x'), account({ lamports: 1n })]] }),
      node.transaction({ writes: [[address('x'), account({ lamports: 2n })]] }),
    ],
  }
}

const LIVE_10 = [
  'a: account 1 10',
  't: transaction 0 10',
  'ts: status 0 10',
  'a: account 2 10',
  't: transaction 1 10',
  'ts: status 1 10',
  'e: entry 10',
]
const SETTLED_10 = [...LIVE_10.slice(1), 'b: block 2/1 10', 'm: meta 10']

test('processed streams receive content, block, block meta, then the slot status; other levels only as slot statuses', async () => {
  await using node = await start()
  const stream = await node.subscribe(EVERYTHING)
  await stream.rest()
  node.produce(content(node))
  assert.deepEqual(await stream.rest(), [
    ...LIVE_10,
    's: completed 10<9',
    'b: block 2/1 10',
    'm: meta 10',
    's: processed 10<9',
    's: confirmed 9<8',
    's: firstShred 11<10',
    's: createdBank 11<10',
  ])
})

test('confirmed and finalized streams receive the last write per account when the slot reaches their level', async () => {
  for (const [commitment, later] of [
    [1, ['s: processed 11<10', ...SETTLED_10, 's: confirmed 10<9', 's: finalized 9<8']],
    [2, ['s: processed 12<11', 's: confirmed 11<10', ...SETTLED_10, 's: finalized 10<9']],
  ] as const) {
    await using node = await start()
    const stream = await node.subscribe({ ...EVERYTHING, slots: { s: {} }, commitment })
    await stream.rest()
    node.produce(content(node))
    for (let slot = 11; slot < 10 + commitment; slot++) node.produce()
    await stream.rest()
    node.produce()
    assert.deepEqual(await stream.rest(), [...later])
  }
})

test('an update names all matching filters; a block is sent once per filter', async () => {
  await using node = await start()
  const stream = await node.subscribe({
    accounts: { one: { account: [address('x')] }, two: {}, three: { account: [address('y')] } },
    blocks: { all: {}, some: { accountInclude: [address('y')] } },
  })
  await stream.rest()
  node.produce(content(node))
  assert.deepEqual(await stream.rest(), [
    'one+two: account 1 10',
    'one+two: account 2 10',
    'all: block 2/0 10',
    'some: block 0/0 10',
  ])
})

test('a new request replaces all filters and the commitment, a ping does not', async () => {
  await using node = await start()
  const stream = await node.subscribe({ slots: { s: { filterByCommitment: true } } })
  await stream.rest()
  node.produce()
  assert.deepEqual(await stream.rest(), ['s: processed 10<9'])
  stream.send({ blocksMeta: { m: {} }, ping: { id: 4711 } })
  assert.equal((await stream.next()).updateOneof.case, 'pong')
  node.produce()
  assert.deepEqual(await stream.rest(), ['s: processed 11<10'])
  stream.send({ blocksMeta: { m: {} }, commitment: 1 })
  await stream.rest()
  node.produce()
  assert.deepEqual(await stream.rest(), ['m: meta 11'])
  stream.send({})
  await stream.rest()
  node.produce()
  assert.deepEqual(await stream.rest(), [])
})

test('pings are sent every ten seconds and a half-closed stream continues', async () => {
  await using node = await start()
  const stream = await node.subscribe({ slots: { s: {} } })
  await stream.rest()
  stream.call.end()
  node.clock.advance(9999)
  node.clock.advance(1)
  assert.equal((await stream.next()).updateOneof.case, 'ping')
  node.produce()
  assert.equal(show(await stream.next()), 's: processed 10<9')
  stream.call.cancel()
})

test('from_slot replays past slots in live order, then continues live', async () => {
  for (const commitment of [0, 1, 2] as const) {
    await using node = await start()
    const live = await node.subscribe({ ...EVERYTHING, commitment })
    await live.rest()
    const lived: string[] = []
    for (let i = 0; i < 5; i++) node.produce(content(node))
    lived.push(...(await live.rest()))
    const replayed = await node.subscribe({ ...EVERYTHING, commitment, fromSlot: 12n })
    const since = lived.filter((line) => Number(/ (\d+)(?:<\d+)?$/.exec(line)?.[1]) >= 12)
    assert.deepEqual(await replayed.rest(), since)
    node.produce(content(node))
    assert.deepEqual(await replayed.rest(), await live.rest())
  }
})

test('from_slot in the future starts at that slot or earlier; too old is OUT_OF_RANGE with the first available slot', async () => {
  await using node = await start({ replaySlots: 5 })
  for (let i = 0; i < 20; i++) node.produce()
  const info = () =>
    node.unary(
      '/geyser.Geyser/SubscribeReplayInfo',
      [SubscribeReplayInfoRequestSchema, {}],
      SubscribeReplayInfoResponseSchema,
    )
  const { firstAvailable } = await info()
  assert.equal(firstAvailable, 25n)
  const old = await node.subscribe({ slots: { s: {} }, fromSlot: 24n })
  assert.deepEqual(pick(await old.status), [11, 'broadcast from 24 is not available, last available: 25'])
  const oldest = await node.subscribe({ slots: { s: {} }, fromSlot: 25n })
  assert.equal((await oldest.rest())[0], 's: processed 25<24')
  const future = await node.subscribe({ slots: { s: {} }, fromSlot: 100n })
  assert.deepEqual(await future.rest(), [])
  node.produce()
  assert.equal((await future.rest())[0], 's: processed 30<29')
})

test('no slot is sent of which the account writes are gone: replay is OUT_OF_RANGE, a stream that lags is ended', async () => {
  await using node = await start()
  for (let i = 0; i < 20; i++) node.produce(content(node))
  node.chain.firstSlotWithWrites = () => 25
  const old = await node.subscribe({ ...EVERYTHING, fromSlot: 24n })
  assert.deepEqual(pick(await old.status), [11, 'broadcast from 24 is not available, last available: 25'])
  const oldest = await node.subscribe({ ...EVERYTHING, commitment: 2, fromSlot: 25n })
  assert.ok((await oldest.rest()).length > 0)
  node.chain.firstSlotWithWrites = () => 29
  node.produce(content(node))
  assert.deepEqual(pick(await oldest.status), [13, 'lagged to receive geyser messages'])
})

test('without replay from_slot is refused', async () => {
  await using node = await start({ replay: false })
  const stream = await node.subscribe({ fromSlot: 10n })
  assert.deepEqual(pick(await stream.status), [13, 'from_slot is not supported'])
})

test('a stream that falls behind the log is ended with INTERNAL, others are not', async () => {
  await using node = await start({ replaySlots: 4 })
  const quick = await node.subscribe({ slots: { s: {} } })
  await quick.rest()
  const session = connect(`http://${node.target}`, { settings: { initialWindowSize: 1000 } })
  const slow = session.request({
    ':method': 'POST',
    ':path': '/geyser.Geyser/Subscribe',
    'content-type': 'application/grpc',
    te: 'trailers',
  })
  const trailers = once(slow, 'trailers')
  const request = encodeMessage(SubscribeRequestSchema, { accounts: { a: {} } })
  slow.write(Buffer.concat([Buffer.from([0, 0, 0, 0, request.length]), request]))
  slow.pause()
  await once(slow, 'response')
  await quick.rest()
  const large = account({ data: new Uint8Array(300_000) })
  for (let i = 0; i < 12; i++) {
    node.produce({ systemWrites: [node.write(address('large'), large)] })
    await quick.rest()
  }
  slow.resume()
  const [reported] = await trailers
  assert.deepEqual([reported['grpc-status'], reported['grpc-message']], ['13', 'lagged to receive geyser messages'])
  session.destroy()
})

test('x-request-snapshot sends all accounts, marked as startup, before any other update', async () => {
  await using node = await start()
  node.produce(content(node))
  const metadata = new Metadata()
  metadata.set('x-request-snapshot', 'true')
  const stream = await node.subscribe({ accounts: { a: {} }, slots: { s: {} } }, { metadata })
  const first = await stream.next()
  assert.equal(show(first), 'a: account 2 10')
  assert.ok(first.updateOneof.case === 'account' && first.updateOneof.value.isStartup)
  node.produce()
  assert.equal((await stream.rest())[0], 's: processed 11<10')
})

test('an invalid request ends the stream with INVALID_ARGUMENT, undecodable bytes with INTERNAL', async () => {
  await using node = await start()
  const bad = await node.subscribe({ accounts: { a: { account: ['x'] } } })
  assert.deepEqual(pick(await bad.status), [3, 'failed to create filter: String is the wrong size'])
  const plain = (bytes: Buffer) => bytes
  const call = node.client.makeBidiStreamRequest('/geyser.Geyser/Subscribe', plain, plain)
  call.on('error', () => {})
  call.resume()
  const status = new Promise<StatusObject>((resolve) => call.on('status', resolve))
  call.write(Buffer.from([0xff]))
  assert.equal((await status).code, 13)
})

test('compresses with gzip when the client accepts it', async () => {
  await using node = await start()
  const zipped = new Client(node.target, credentials.createInsecure(), { 'grpc.default_compression_algorithm': 2 })
  const stream = await node.subscribe(EVERYTHING, { through: zipped })
  await stream.rest()
  node.produce(content(node))
  assert.deepEqual((await stream.rest()).slice(0, 7), LIVE_10)
  zipped.close()
})

test('limits the number of streams, and a shutdown ends them with UNAVAILABLE', async () => {
  await using node = await start({ streamsMax: 1 })
  const first = await node.subscribe({ slots: { s: {} } })
  const call: Call = node.client.makeBidiStreamRequest(
    '/geyser.Geyser/Subscribe',
    () => Buffer.alloc(0),
    () => undefined as never,
  )
  call.on('error', () => {})
  const status = new Promise<StatusObject>((resolve) => call.on('status', resolve))
  call.resume()
  assert.deepEqual(pick(await status), [8, 'max subscription limit exceeded'])
  const drained = node.server.drain(10_000)
  assert.deepEqual(pick(await first.status), [14, 'server is shutting down try again later'])
  node.client.close()
  await drained
})

test('the unary methods respond at each commitment', async () => {
  await using node = await start()
  node.produce()
  node.produce()
  const geyser = (method: string) => `/geyser.Geyser/${method}`
  const slot = async (commitment?: 0 | 1 | 2) =>
    (
      await node.unary(
        geyser('GetSlot'),
        [GetSlotRequestSchema, commitment === undefined ? {} : { commitment }],
        GetSlotResponseSchema,
      )
    ).slot
  assert.deepEqual([await slot(), await slot(0), await slot(1), await slot(2)], [11n, 11n, 10n, 9n])
  const height = await node.unary(
    geyser('GetBlockHeight'),
    [GetBlockHeightRequestSchema, { commitment: 1 }],
    GetBlockHeightResponseSchema,
  )
  assert.equal(height.blockHeight, 10n)
  const latest = await node.unary(
    geyser('GetLatestBlockhash'),
    [GetLatestBlockhashRequestSchema, {}],
    GetLatestBlockhashResponseSchema,
  )
  assert.deepEqual([latest.slot, latest.lastValidBlockHeight], [11n, 311n])
  assert.equal(latest.blockhash, node.chain.block(11)?.blockhash)
  const valid = (blockhash: string, commitment: 0 | 2) =>
    node.unary(
      geyser('IsBlockhashValid'),
      [IsBlockhashValidRequestSchema, { blockhash, commitment }],
      IsBlockhashValidResponseSchema,
    )
  assert.deepEqual(pickValid(await valid(latest.blockhash, 0)), [11n, true])
  assert.deepEqual(pickValid(await valid(latest.blockhash, 2)), [9n, false])
  assert.equal((await node.unary(geyser('Ping'), [PingRequestSchema, { count: -5 }], PongResponseSchema)).count, -5)
  const { version } = await node.unary(geyser('GetVersion'), [GetVersionRequestSchema, {}], GetVersionResponseSchema)
  assert.deepEqual(Object.keys(JSON.parse(version).version), [
    'package',
    'version',
    'proto',
    'solana',
    'git',
    'rustc',
    'buildts',
  ])
  await assert.rejects(slot(7 as never), { code: 2, details: 'failed to create CommitmentLevel from 7' })
  for (const method of ['SubscribeDeshred', 'SubscribeGossip', 'Nonsense']) {
    await assert.rejects(node.unary(geyser(method), [PingRequestSchema, {}], PongResponseSchema), { code: 12 })
  }
})

test('serves the health of the server and of its services; an unknown service is NOT_FOUND', async () => {
  await using node = await start()
  const check = (service: string) =>
    node.unary('/grpc.health.v1.Health/Check', [HealthCheckRequestSchema, { service }], HealthCheckResponseSchema)
  assert.equal((await check('')).status, 1)
  assert.equal((await check('geyser.Geyser')).status, 1)
  await assert.rejects(check('other'), { code: 5 })
})

function pick({ code, details }: StatusObject): [number, string] {
  return [code, details]
}

function pickValid({ slot, valid }: { slot: bigint; valid: boolean }): [bigint, boolean] {
  return [slot, valid]
}
