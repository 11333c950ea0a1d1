import assert from 'node:assert/strict'
import { createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { startFakeNode } from '../../test/faults/fake-node.ts'
import { startFaultProxy } from '../../test/faults/fault-proxy.ts'
import { startRig } from '../../test/faults/upstreams-rig.ts'
import { createManualClock } from '../core/clock.ts'
import type { GrpcCall } from '../platform/grpc/call.ts'
import { frameMessage } from '../platform/grpc/framing.ts'
import type { GrpcEnd } from '../platform/grpc/stream.ts'
import { systemClock } from '../platform/process/clock.ts'
import { until } from '../platform/process/test-wait.ts'
import { forwardedMetadata } from './grpc-link.ts'

test("opens a stream with the node's credential and none of the customer's", async () => {
  await using node = await startFakeNode()
  const calls: GrpcCall[] = []
  node.onGrpcCall = (call) => {
    calls.push(call)
    call.sendHeaders()
    call.onMessage((message) => void call.send(message))
  }
  await using rig = await startRig({
    clock: systemClock,
    nodes: [{ name: 'a', grpc: node.grpc, credential: 'env:KEY' }],
    env: { KEY: 'node-secret' },
  })
  const { grpc } = rig.upstreams.shared
  const opened = await grpc.open('/geyser.Geyser/Subscribe', {
    'x-token': 'customer-secret',
    authorization: 'Bearer customer-secret',
    'x-api-key': 'customer-secret',
    cookie: 'customer-secret',
    'x-forwarded-for': '192.0.2.1',
    'grpc-encoding': 'customer-secret',
    'x-request-snapshot': '1',
    ':path': '/customer-secret',
  })
  assert.ok(opened.ok)
  let bytes = Buffer.alloc(0)
  opened.stream.onData((chunk) => void (bytes = Buffer.concat([bytes, chunk])))
  opened.stream.write(frameMessage(Buffer.from('hello')))
  await until('the echo is here', () => bytes.length > 0)
  assert.equal(calls[0]?.path, '/geyser.Geyser/Subscribe')
  assert.equal(calls[0]?.metadata['x-token'], 'node-secret')
  assert.equal(calls[0]?.metadata['x-request-snapshot'], '1')
  assert.ok(!JSON.stringify(calls[0]?.metadata).includes('customer-secret'))
  assert.equal(rig.upstreams.status()[0]?.grpcStreams, 1)
  assert.equal(rig.registry.value('sluice_upstreams_grpc_streams', { upstream: 'a' }), 1)
  opened.stream.cancel()
  await until('it is over', () => rig.upstreams.status()[0]?.grpcStreams === 0)
})

test('forwards only metadata of the allow-list', () => {
  assert.deepEqual(forwardedMetadata({ 'x-token': 'a', 'grpc-timeout': '5S', te: 'x', 'user-agent': undefined }), {
    'grpc-timeout': '5S',
  })
})

test('does not forward a value for which a proxy would close the connection that customers share', () => {
  const metadata = { 'user-agent': 'a'.repeat(1025), 'grpc-timeout': '1'.repeat(1025), 'x-request-snapshot': 'true' }
  assert.deepEqual(forwardedMetadata(metadata), { 'x-request-snapshot': 'true' })
  assert.deepEqual(forwardedMetadata({ 'user-agent': 'a'.repeat(1024) }), { 'user-agent': 'a'.repeat(1024) })
})

test('spreads streams over nodes, shares connections, and uses another node when one is unreachable', async () => {
  await using a = await startFakeNode()
  await using b = await startFakeNode()
  const open = { a: 0, b: 0 }
  a.onGrpcCall = (call) => {
    open.a += 1
    call.sendHeaders()
  }
  b.onGrpcCall = (call) => {
    open.b += 1
    call.sendHeaders()
  }
  await using proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: a.ports.grpc } })
  await using rig = await startRig({
    clock: systemClock,
    nodes: [
      { name: 'a', grpc: `http://127.0.0.1:${proxy.port}` },
      { name: 'b', grpc: b.grpc },
    ],
  })
  const { grpc } = rig.upstreams.shared
  const opened = await Promise.all(Array.from({ length: 10 }, () => grpc.open('/a/b', {})))
  assert.ok(opened.every(({ ok }) => ok))
  await until('all are open', () => open.a + open.b === 10)
  assert.ok(open.a > 0 && open.b > 0)
  assert.equal(proxy.accepted, 1, 'calls at the same time wait for one connection')

  const ends: GrpcEnd[] = []
  for (const one of opened) if (one.ok && one.node.name === 'a') one.stream.onEnd((end) => ends.push(end))
  await proxy.disable()
  await until('those on the lost node end', () => ends.length === open.a)
  for (const end of ends) assert.deepEqual([end.isFromServer, end.status.code], [false, 14])
  for (let at = 0; at < 4; at++) {
    const again = await grpc.open('/a/b', {})
    assert.ok(again.ok && again.node.name === 'b')
  }
  rig.upstreams.drain('b')
  assert.deepEqual(await grpc.open('/a/b', {}), { ok: false, reason: 'no-upstream' })
})

/** A node behind a proxy that ends each connection gracefully (GOAWAY without an error) as soon as it carries a call, which stays open. */
async function startDrainingNode() {
  const sessions = new Set<ServerHttp2Session>()
  const server = createServer()
  server.on('session', (session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
    session.on('stream', (stream) => {
      stream.on('error', () => {})
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' })
      session.goaway()
      // After the GOAWAY on the same connection.
      stream.write('x')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sessions,
    [Symbol.dispose]() {
      for (const session of sessions) session.destroy()
      server.close()
    },
  }
}

test('connections that their node has gracefully closed do not count against grpcPerNodeMax', async () => {
  using node = await startDrainingNode()
  await using rig = await startRig({
    clock: systemClock,
    nodes: [{ name: 'a', grpc: node.url }],
    connections: { grpcPerNodeMax: 1 },
  })
  const { grpc } = rig.upstreams.shared
  let ended = 0
  const openNext = async () => {
    const opened = await grpc.open('/a/b', {})
    assert.ok(opened.ok, 'the node takes the call')
    opened.stream.onEnd(() => void ended++)
    await new Promise<void>((resolve) => opened.stream.onData(() => resolve()))
  }
  for (let at = 0; at < 3; at++) await openNext()
  assert.deepEqual([node.sessions.size, ended], [3, 0])
  // They are bounded too: the oldest is closed.
  for (let at = 3; at < 65; at++) await openNext()
  await until('the oldest is closed', () => node.sessions.size === 64)
  assert.equal(ended, 1)
})

test('calls at the same time do not share a connection beyond the limit of its node', async () => {
  let streams = 0
  const sessions = new Set<ServerHttp2Session>()
  const server = createServer({ settings: { maxConcurrentStreams: 2 } })
  server.on('session', (session) => void sessions.add(session))
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => {})
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' })
    streams += 1
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  try {
    await using rig = await startRig({
      clock: systemClock,
      nodes: [{ name: 'a', grpc: url }],
      connections: { grpcPerNodeMax: 3 },
    })
    const { grpc } = rig.upstreams.shared
    const openSome = async (count: number) => {
      const opened = await Promise.all(Array.from({ length: count }, () => grpc.open('/a/b', {})))
      return opened.filter(({ ok }) => ok).length
    }
    assert.equal(await openSome(5), 5)
    await until('each is at the node, none waits for another to end', () => streams === 5)
    assert.equal(sessions.size, 3)
    assert.equal(await openSome(4), 1, 'the others find no connection')
  } finally {
    for (const session of sessions) session.destroy()
    server.close()
  }
})

/** A node that is no gRPC server: a web page is the response to every call. */
async function startWebServer() {
  const sessions = new Set<ServerHttp2Session>()
  const server = createServer()
  server.on('session', (session) => {
    sessions.add(session)
    session.on('stream', (stream) => {
      stream.on('error', () => {})
      stream.respond({ ':status': 404, 'content-type': 'text/html' }, { endStream: true })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.dispose]() {
      for (const session of sessions) session.destroy()
      server.close()
    },
  }
}

const SUBSCRIBE = '/geyser.Geyser/Subscribe'
const GET_SLOT = '/geyser.Geyser/GetSlot'

for (const [what, path, code] of [
  ['UNAUTHENTICATED', GET_SLOT, 16],
  ['PERMISSION_DENIED', GET_SLOT, 7],
  ['PERMISSION_DENIED for a stream', SUBSCRIBE, 7],
  ['RESOURCE_EXHAUSTED', GET_SLOT, 8],
  ['RESOURCE_EXHAUSTED for a stream', SUBSCRIBE, 8],
  ['UNIMPLEMENTED', SUBSCRIBE, 12],
  ['UNAVAILABLE', SUBSCRIBE, 14],
  ['a web page', GET_SLOT, undefined],
] as const) {
  test(`a node that ends calls at once with ${what} does not get all new ones`, async () => {
    using page = await startWebServer()
    await using bad = await startFakeNode()
    await using good = await startFakeNode()
    bad.onGrpcCall = (call) => call.end({ code: code ?? 0, message: 'x' })
    good.onGrpcCall = (call) => call.sendHeaders()
    const clock = createManualClock()
    await using rig = await startRig({
      clock,
      nodes: [
        { name: 'bad', grpc: code === undefined ? page.url : bad.grpc },
        { name: 'good', grpc: good.grpc },
      ],
    })
    const { grpc } = rig.upstreams.shared
    const isStream = path === SUBSCRIBE
    let atBad = 0
    for (let at = 0; at < 10; at++) {
      const opened = await grpc.open(path, {}, { isStream })
      assert.ok(opened.ok)
      if (opened.node.name === 'good') continue
      atBad += 1
      await new Promise<void>((resolve) => opened.stream.onEnd(() => resolve()))
    }
    assert.equal(atBad, 1)
    assert.equal(rig.log.filter((line) => line.includes('upstream ends gRPC calls at once')).length, 1)
    clock.advance(100)
    const again = await grpc.open(path, {}, { isStream })
    assert.ok(again.ok && again.node.name === 'bad', 'it is tried again')
  })
}

test('a unary call clears a refusal of unary calls, but not a refusal of streams', async () => {
  await using node = await startFakeNode()
  const clock = createManualClock()
  await using rig = await startRig({ clock, nodes: [{ name: 'a', grpc: node.grpc }] })
  const call = async (path: string, isStream: boolean) => {
    clock.advance(2000)
    const opened = await rig.upstreams.shared.grpc.open(path, {}, { isStream })
    assert.ok(opened.ok)
    await new Promise<void>((resolve) => {
      opened.stream.onHeaders(() => resolve())
      opened.stream.onEnd(() => resolve())
    })
    opened.stream.cancel()
  }
  const recoveries = () => rig.log.filter((line) => line.includes('upstream accepts gRPC calls again')).length
  node.onGrpcCall = (open) => open.end({ code: 16, message: 'x' })
  await call(GET_SLOT, false)
  node.onGrpcCall = (open) => open.sendHeaders()
  await call(GET_SLOT, false)
  assert.equal(recoveries(), 1)

  node.onGrpcCall = (open) => open.end({ code: 14, message: 'x' })
  await call(SUBSCRIBE, true)
  node.onGrpcCall = (open) => open.sendHeaders()
  await call(GET_SLOT, false)
  assert.equal(recoveries(), 1)
  await call(SUBSCRIBE, true)
  assert.equal(recoveries(), 2)
})

test('a method that a node lacks, and a request that it refuses, keep no other calls away from it', async () => {
  await using node = await startFakeNode()
  await using other = await startFakeNode()
  other.onGrpcCall = (call) => call.sendHeaders()
  await using rig = await startRig({
    clock: createManualClock(),
    nodes: [
      { name: 'a', grpc: node.grpc },
      { name: 'b', grpc: other.grpc },
    ],
  })
  const { grpc } = rig.upstreams.shared
  const open = async (path: string) => {
    const opened = await grpc.open(path, {}, { isStream: true })
    assert.ok(opened.ok)
    return opened
  }
  // From here on it has more calls than the other one.
  for (let at = 0; at < 2; at++) if ((await open('/a/b')).node.name === 'b') break
  for (const [path, code] of [
    ['/geyser.Geyser/SubscribeReplayInfo', 12],
    ['/geyser.Geyser/SubscribeDeshred', 7],
    ['/geyser.Geyser/SubscribeDeshred', 8],
    [SUBSCRIBE, 3],
  ] as const) {
    node.onGrpcCall = (call) => call.end({ code, message: 'x' })
    const { node: used, stream } = await open(path)
    assert.equal(used.name, 'a')
    await new Promise<void>((resolve) => stream.onEnd(() => resolve()))
  }
  assert.equal((await open(SUBSCRIBE)).node.name, 'a')
})

test('a node that ends every call at once is used where there is no other', async () => {
  await using node = await startFakeNode()
  await using rig = await startRig({ clock: createManualClock(), nodes: [{ name: 'a', grpc: node.grpc }] })
  for (let at = 0; at < 2; at++) {
    const opened = await rig.upstreams.shared.grpc.open(SUBSCRIBE, {})
    assert.ok(opened.ok)
    const status = await new Promise<number>((resolve) => opened.stream.onEnd(({ status: { code } }) => resolve(code)))
    assert.equal(status, 12)
  }
})
