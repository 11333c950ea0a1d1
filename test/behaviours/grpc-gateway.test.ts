import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Metadata } from '@grpc/grpc-js'
import { limitSubscription } from '../../src/access/provisioning/subscriptions.ts'
import type { GrpcCall } from '../../src/platform/grpc/call.ts'
import { frameMessage } from '../../src/platform/grpc/framing.ts'
import { GrpcCode } from '../../src/platform/grpc/status.ts'
import { serveUnary } from '../../src/platform/grpc/unary.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { SubscribeRequestSchema, SubscribeUpdateSchema } from '../../src/solana/gen/geyser_pb.ts'
import { HealthCheckRequestSchema } from '../../src/solana/gen/health_pb.ts'
import { encodeMessage } from '../../src/solana/geyser/protobuf.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { type FaultProxy, startFaultProxy } from '../faults/fault-proxy.ts'
import {
  type GrpcGateway,
  openStream,
  PING,
  rawCall,
  SUBSCRIBE,
  startGrpcGateway,
  tokenMetadata,
  unary,
} from '../support/gateway/grpc.ts'

type Request = Parameters<typeof encodeMessage<typeof SubscribeRequestSchema>>[1]
const request = (init: Request) => Buffer.from(encodeMessage(SubscribeRequestSchema, init))
const SLOTS = request({ slots: { s: {} } })
const PING_ONLY = request({ ping: { id: 1 } })
const slotUpdate = (slot: bigint) =>
  encodeMessage(SubscribeUpdateSchema, { filters: ['s'], updateOneof: { case: 'slot', value: { slot } } })

/** The gRPC server over a node whose responses the test scripts. */
describe('the gRPC server', () => {
  let node: FakeNode
  let proxy: FaultProxy
  let on: GrpcGateway
  /** Requests of the newest stream only: messages of earlier ones may reach the node later. */
  let calls: { call: GrpcCall; messages: Uint8Array[] }[] = []
  let streams = 0
  let respond: (call: GrpcCall) => void
  let nodeHeaders: Record<string, string> = {}

  before(async () => {
    node = await startFakeNode()
    proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: node.ports.grpc } })
    on = await startGrpcGateway([{ name: 'fake', grpc: `http://127.0.0.1:${proxy.port}` }], { refusalDelayMs: 1000 })
    node.onGrpcCall = (call) => {
      if (call.path !== SUBSCRIBE) return respond(call)
      const messages: Uint8Array[] = []
      if (call.metadata['x-request-snapshot'] === `${streams}`) calls.push({ call, messages })
      call.onMessage((message) => messages.push(message))
      call.sendHeaders({ 'x-node': 'one', ...nodeHeaders })
      respond(call)
    }
    respond = () => {}
  })
  after(async () => {
    await on[Symbol.asyncDispose]()
    await proxy[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  function openNext(metadata: Metadata) {
    calls = []
    streams += 1
    // The only forwarded metadata that gRPC itself does not use.
    metadata.set('x-request-snapshot', `${streams}`)
    return openStream(on.client, SUBSCRIBE, metadata)
  }

  async function begin(overrides: object = {}, metadata?: (token: string) => Metadata) {
    const { token, id } = await on.gateway.subscribe({ overrides })
    const stream = openNext((metadata ?? tokenMetadata)(token))
    return { ...stream, token, id, permits: () => on.gateway.access.permits.taken(id).grpcStreams }
  }

  const quota = (id: string, token: string) => {
    const caller = on.gateway.access.authenticate({ token }, 'bundle', Date.now())
    assert.ok(caller.ok && caller.subscription.id === id)
    return on.gateway.access.quota(caller).month.used
  }

  it("sends the budget in the initial metadata, beside the node's own", async () => {
    const { token } = await on.gateway.subscribe({ overrides: { unitsPerSecond: 50 } })
    respond = (call) => serveUnary(call, (message) => ({ ok: true, message }))
    const {
      error,
      response: echoed,
      metadata,
    } = await unary(on.client, PING, Buffer.from([8, 7]), tokenMetadata(token))
    assert.equal(error, null)
    assert.deepEqual(echoed, Buffer.from([8, 7]))
    assert.deepEqual(
      ['limit', 'remaining', 'reset', 'cost'].map((name) => metadata.get(`x-ratelimit-${name}`)[0]),
      ['500', '499', '1', '1'],
    )
    respond = () => {}
    const stream = await begin()
    const headers = await stream.headers
    assert.equal(headers.get('x-node')[0], 'one')
    assert.equal(headers.get('x-ratelimit-cost')[0], '1')
    stream.call.cancel()
  })

  it('relays bytes unchanged both ways, for any chunking of the frames', async () => {
    const stream = await begin()
    stream.send(SLOTS)
    await until('the node has the request', () => calls[0]?.messages.length === 1)
    assert.deepEqual(calls[0]?.messages[0], SLOTS)
    const sent = Array.from({ length: 400 }, (_, at) => Buffer.alloc((at * 7919) % 5000, at))
    const all = Buffer.concat(sent.map((message) => frameMessage(message)))
    for (let at = 0; at < all.length; at += 7777) calls[0]?.call.writeFramed(all.subarray(at, at + 7777))
    await until('all arrived', () => stream.messages.length === sent.length)
    assert.deepEqual(stream.messages, sent)
    calls[0]?.call.end({ code: 11, message: 'broadcast from 5 is not available', metadata: { 'x-last': 'word' } })
    const ended = await stream.ended
    assert.deepEqual([ended.code, ended.details], [11, 'broadcast from 5 is not available'])
    assert.equal(ended.metadata.get('x-last')[0], 'word')
    assert.equal(stream.permits(), 0)
  })

  it('reads compressed requests, and responds in the encoding of the node', async () => {
    const stream = await begin({ grpcAccountsPerStream: 2 }, (token) => {
      const metadata = tokenMetadata(token)
      metadata.set('grpc-internal-encoding-request', 'gzip')
      return metadata
    })
    stream.send(SLOTS)
    await until('the node has it', () => calls[0]?.messages.length === 1)
    assert.deepEqual(calls[0]?.messages[0], SLOTS)
    stream.call.cancel()

    const { token } = await on.gateway.subscribe({ overrides: { grpcAccountsPerStream: 2 } })
    for (const encoding of ['gzip', 'zstd'] as const) {
      const message = frameMessage(Buffer.from('from the node'), encoding)
      nodeHeaders = { 'grpc-encoding': encoding }
      respond = (call) => call.onHalfClose(() => (call.writeFramed(message), call.end({ code: 0 })))
      calls = []
      const headers: [string, string][] = [
        ['x-token', token],
        ['grpc-encoding', encoding],
        ['grpc-accept-encoding', `${encoding},identity`],
        ['x-request-snapshot', `${streams}`],
      ]
      const response = await rawCall(on.port, SUBSCRIBE, headers, frameMessage(SLOTS, encoding))
      assert.deepEqual([response.code, response.headers['grpc-encoding']], [0, encoding])
      assert.deepEqual(response.body, message)
      // The request is forwarded uncompressed, so that a node without this encoding takes it.
      assert.deepEqual([calls[0]?.messages, calls[0]?.call.metadata['grpc-encoding']], [[SLOTS], undefined])
      assert.equal(calls[0]?.call.metadata['grpc-accept-encoding'], `${encoding},identity`)
      const many = request({ accounts: { big: { account: ['a', 'b', 'c'] } } })
      const refused = await rawCall(on.port, SUBSCRIBE, headers, frameMessage(many, encoding))
      assert.equal(refused.code, GrpcCode.invalidArgument)
    }
    nodeHeaders = {}
    respond = () => {}
  })

  it('refuses a request over the plan, first or later, by filter and rule, and neither charges nor forwards it', async () => {
    const many = request({ slots: { s: {} }, accounts: { big: { account: ['a', 'b'], owner: ['c'] } } })
    for (const earlier of [[], [SLOTS], [PING_ONLY]]) {
      const stream = await begin({ grpcAccountsPerStream: 2 })
      for (const message of earlier) stream.send(message)
      // Messages in flight to the node when the stream ends do not reach it.
      await until('the node has what was within the plan', () => calls[0]?.messages.length === earlier.length)
      stream.send(many)
      const { code, details } = await stream.ended
      assert.equal(code, GrpcCode.invalidArgument)
      assert.match(details, /accounts "big" brings the request to 3 accounts; grpcAccountsPerStream allows 2 /)
      await until('the call to the node is cancelled', () => calls[0]?.call.isOver ?? false)
      assert.deepEqual(calls[0]?.messages, earlier)
      assert.equal(quota(stream.id, stream.token), earlier.includes(SLOTS) ? 1 : 0)
      assert.equal(stream.permits(), 0)
    }
    const broken = await begin()
    broken.send(Buffer.from('no request'))
    assert.match((await broken.ended).details, /not a SubscribeRequest/)
    await until('the call to the node is cancelled', () => calls[0]?.call.isOver ?? false)
  })

  it('applies changed limits to an open stream', async () => {
    const stream = await begin({ grpcAccountsPerStream: 2 })
    const three = request({ accounts: { x: { account: Array(3).fill('1'.repeat(32)) } } })
    stream.send(SLOTS)
    await until('the node has it', () => calls[0]?.messages.length === 1)
    await limitSubscription(on.gateway.on, { subscription: stream.id, overrides: { grpcAccountsPerStream: 3 } })
    await until('the gateway has the change', () => {
      const caller = on.gateway.access.authenticate({ token: stream.token }, 'bundle', Date.now())
      return caller.ok && caller.limits.grpcAccountsPerStream === 3
    })
    stream.send(three)
    await until('the node has the second', () => calls[0]?.messages.length === 2)
    stream.call.cancel()
  })

  it('charges the opening and every later request, but no pings', async () => {
    const stream = await begin()
    for (const message of [SLOTS, PING_ONLY, SLOTS, PING_ONLY, PING_ONLY, SLOTS]) stream.send(message)
    await until('the node has them', () => calls[0]?.messages.length === 6)
    assert.equal(quota(stream.id, stream.token), 3)
    stream.call.cancel()
    const flood = await begin()
    for (let ping = 0; ping < 25; ping++) flood.send(PING_ONLY)
    await until('the node has them', () => calls[0]?.messages.length === 25)
    assert.equal(quota(flood.id, flood.token), 1 + 5, 'pings beyond 20 in 10 s are charged')
    flood.call.cancel()
  })

  it('refuses with RESOURCE_EXHAUSTED and the name of the limit, after a second', async () => {
    const { token, id } = await on.gateway.subscribe({ overrides: { grpcStreams: 1, unitsPerMonth: 2 } })
    const first = openNext(tokenMetadata(token))
    await first.headers
    for (const [path, expected] of [
      [SUBSCRIBE, /1 open gRPC streams; limit: grpcStreams; cost: 1; try again in 5000 ms/],
    ] as const) {
      const startMs = performance.now()
      const refused = await openStream(on.client, path, tokenMetadata(token)).ended
      assert.equal(refused.code, GrpcCode.resourceExhausted)
      assert.match(refused.details, expected)
      assert.ok(performance.now() - startMs > 900)
      assert.equal(refused.metadata.get('x-ratelimit-limit')[0], '2')
    }
    first.send(SLOTS)
    first.send(SLOTS)
    await until('two are there', () => calls[0]?.messages.length === 2)
    const startMs = performance.now()
    first.send(SLOTS)
    const spent = await first.ended
    assert.ok(performance.now() - startMs > 900)
    assert.equal(spent.code, GrpcCode.resourceExhausted)
    assert.match(spent.details, /2 units per calendar month; limit: unitsPerMonth/)
    assert.equal(calls[0]?.messages.length, 2)
    const { error } = await unary(on.client, PING, Buffer.alloc(0), tokenMetadata(token))
    assert.equal(error?.code, GrpcCode.resourceExhausted)
    assert.equal(quota(id, token), 2)
    assert.equal(on.gateway.access.permits.taken(id).grpcStreams, 0)
  })

  it('cancels at the node and releases the permit when the client cancels', async () => {
    const stream = await begin({ grpcStreams: 1 })
    await stream.headers
    stream.call.cancel()
    await until('the call to the node is cancelled', () => calls[0]?.call.isOver ?? false)
    await until('the permit is released', () => stream.permits() === 0)
    await until('nothing is open', () => on.server.openCalls === 0)
  })

  it('forwards a half-close and keeps the stream open', async () => {
    const stream = await begin()
    let isHalf = false
    await until('it is there', () => calls.length === 1)
    calls[0]?.call.onHalfClose(() => (isHalf = true))
    stream.send(SLOTS)
    stream.call.end()
    await until('the node knows', () => isHalf)
    calls[0]?.call.send(slotUpdate(5n))
    await until('it still flows', () => stream.messages.length === 1)
    stream.call.cancel()
  })

  it('a lost node is UNAVAILABLE, with the last slot and no partial message', async () => {
    const stream = await begin()
    stream.send(SLOTS)
    await until('it is there', () => calls[0]?.messages.length === 1)
    calls[0]?.call.send(slotUpdate(812_345_678n))
    calls[0]?.call.writeFramed(frameMessage(slotUpdate(812_345_679n)).subarray(0, 9))
    await until('it arrived', () => stream.messages.length === 1)
    proxy.resetConnections()
    const { code, details } = await stream.ended
    assert.deepEqual([code, details], [14, 'the node behind this call is lost; last slot seen: 812345678'])
  })

  it('refuses with UNAVAILABLE without a node, and does not charge', async () => {
    const { token, id } = await on.gateway.subscribe({})
    await proxy.disable()
    const { error } = await unary(on.client, PING, Buffer.alloc(0), tokenMetadata(token))
    await proxy.enable()
    assert.equal(error?.code, GrpcCode.unavailable)
    assert.equal(quota(id, token), 0)
  })

  it('forwards unknown methods of geyser.Geyser, and no other service', async () => {
    const { token } = await on.gateway.subscribe({})
    respond = (call) => serveUnary(call, () => ({ ok: true, message: Buffer.from(call.path) }))
    const path = '/geyser.Geyser/SubscribeGossip'
    await until('the node is back', async () => {
      const { response: reported } = await unary(on.client, path, Buffer.alloc(0), tokenMetadata(token))
      return reported?.toString() === path
    })
    const other = await unary(on.client, '/other.Service/Do', Buffer.alloc(0), tokenMetadata(token))
    assert.equal(other.error?.code, GrpcCode.unimplemented)
    // A status about the gateway's credential is not passed on to the customer.
    for (const code of [GrpcCode.unauthenticated, GrpcCode.permissionDenied]) {
      respond = (call) => call.end({ code, message: 'No valid auth token' })
      const refused = await unary(on.client, PING, Buffer.alloc(0), tokenMetadata(token))
      assert.equal(refused.error?.code, GrpcCode.unavailable)
      assert.doesNotMatch(refused.error?.details ?? '', /auth/)
    }
    respond = () => {}
  })

  it('serves the health check without a token', async () => {
    const check = (service: string) =>
      unary(
        on.client,
        '/grpc.health.v1.Health/Check',
        encodeMessage(HealthCheckRequestSchema, { service }),
        new Metadata(),
      )
    assert.deepEqual((await check('')).response, Buffer.from([8, 1]))
    assert.deepEqual((await check('geyser.Geyser')).response, Buffer.from([8, 1]))
    assert.equal((await check('nobody')).error?.code, GrpcCode.notFound)
    const watch = (service: string) => {
      const stream = openStream(on.client, '/grpc.health.v1.Health/Watch', new Metadata())
      stream.send(encodeMessage(HealthCheckRequestSchema, { service }))
      stream.call.end()
      return stream
    }
    const [watching, nobody] = [watch(''), watch('nobody')]
    await until('both have a status', () => watching.messages.length === 1 && nobody.messages.length === 1)
    assert.deepEqual([watching.messages, nobody.messages], [[Buffer.from([8, 1])], [Buffer.from([8, 3])]])
    on.server.beginLameDuck()
    assert.deepEqual((await check('')).response, Buffer.from([8, 2]))
    await until('the change was sent', () => watching.messages.length === 2)
    assert.deepEqual(watching.messages[1], Buffer.from([8, 2]))
    assert.equal(nobody.messages.length, 1)
    for (const { call } of [watching, nobody]) call.cancel()
    // Once this is served, the two before it are closed.
    await check('')
  })

  it('limits the health watches of an address, and accepts new ones after others close', async () => {
    const ask = encodeMessage(HealthCheckRequestSchema, { service: 'nobody' })
    const watch = () => {
      const stream = openStream(on.client, '/grpc.health.v1.Health/Watch', new Metadata())
      stream.send(ask)
      return stream
    }
    const streams = Array.from({ length: 32 }, watch)
    await until('all watch', () => streams.every(({ messages }) => messages.length === 1))
    const refused = await watch().ended
    const reason = 'limit reached: 32 health watches of one address; limit: healthWatches'
    assert.deepEqual([refused.code, refused.details], [8, reason])
    for (const { call } of streams) call.cancel()
    for (let tries = 0; tries < 100; tries++) {
      const stream = watch()
      let isRefused = false
      void stream.ended.then(() => (isRefused = true))
      await until('a status was sent, or it is refused', () => isRefused || stream.messages.length === 1)
      stream.call.cancel()
      if (!isRefused) return
    }
    assert.fail('no place became free')
  })

  it('ends streams with UNAVAILABLE and completes unary calls at a shutdown', async () => {
    const stream = await begin()
    await stream.headers
    const { token } = await on.gateway.subscribe({})
    const held = Promise.withResolvers<GrpcCall>()
    respond = (call) => held.resolve(call)
    const asked = unary(on.client, PING, Buffer.from([8, 1]), tokenMetadata(token))
    const call = await held.promise
    const drained = on.server.drain(5000)
    const { code, details } = await stream.ended
    assert.deepEqual([code, details], [14, 'server is shutting down try again later'])
    serveUnary(call, (message) => ({ ok: true, message }))
    assert.deepEqual((await asked).response, Buffer.from([8, 1]))
    on.client.close()
    await drained
  })
})
