import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startFakeNode } from '../../test/faults/fake-node.ts'
import { type Rig, rpcBody, startRig, textOf } from '../../test/faults/upstreams-rig.ts'
import { frameMessage } from '../platform/grpc/framing.ts'
import type { GrpcEnd } from '../platform/grpc/stream.ts'
import { systemClock } from '../platform/process/clock.ts'
import { until } from '../platform/process/test-wait.ts'
import { upstreamRequest } from './http-call.ts'
import { type NodeOptionsInput, parseUpstreamsOptions } from './options.ts'

const SLOW_PROBES = { health: { probeMs: 60_000, silentMs: 60_000 } }

/** The rig with a reload as the processes do it. */
async function startWith(nodes: NodeOptionsInput[], env: Record<string, string> = {}) {
  const rig = await startRig({ clock: systemClock, nodes, env, ...SLOW_PROBES })
  const reload = (next: NodeOptionsInput[]) =>
    rig.upstreams.reload(parseUpstreamsOptions({ nodes: next, allowPrivate: true, ...SLOW_PROBES }))
  return { ...rig, reload }
}

const call = ({ upstreams }: Pick<Rig, 'upstreams'>, method = 'getBalance') =>
  upstreams.shared.forwardAsync(upstreamRequest(method, rpcBody(method)))
const names = ({ upstreams }: Pick<Rig, 'upstreams'>) => upstreams.status().map(({ name }) => name)

describe('nodes change without a restart', () => {
  test('an added node gets calls, a removed one no more, and an unchanged one keeps its connections', async () => {
    await using a = await startFakeNode()
    await using b = await startFakeNode()
    await using c = await startFakeNode()
    await using rig = await startWith([
      { name: 'a', rpc: a.rpc, ws: a.ws },
      { name: 'b', rpc: b.rpc },
    ])
    const shared = rig.upstreams.shared
    await until('a has its WebSocket', () => a.wsClients.size === 1)
    const [socket] = a.wsClients
    const changes = await rig.reload([
      { name: 'a', rpc: a.rpc, ws: a.ws },
      { name: 'c', rpc: c.rpc },
    ])
    assert.deepEqual(changes, [
      { name: 'c', change: 'added' },
      { name: 'b', change: 'removed' },
    ])
    assert.deepEqual(names(rig), ['a', 'c'])
    // Those of its probes too, long before they would be closed as idle.
    await until('the removed node has no connection', () => b.rpcConnections === 0, 10_000)
    for (let round = 0; round < 8; round++) assert.equal((await call(rig)).kind, 'responded')
    assert.deepEqual([b.calls.length, c.calls.length > 0, a.calls.length > 0], [0, true, true])
    assert.equal(rig.upstreams.shared, shared, 'services keep the same object')
    assert.deepEqual([...a.wsClients], [socket])

    assert.ok((await rig.registry.text()).includes('sluice_upstreams_state{upstream="c",state="healthy"} 1'))
    await until('the series of a removed node end', async () => !(await rig.registry.text()).includes('upstream="b"'))
    assert.deepEqual(
      await rig.reload([
        { name: 'a', rpc: a.rpc, ws: a.ws },
        { name: 'c', rpc: c.rpc },
      ]),
      [],
    )
  })

  test('calls in flight at a removed node finish, and then its connections close', async () => {
    await using a = await startFakeNode()
    await using b = await startFakeNode()
    await using rig = await startWith([{ name: 'a', rpc: a.rpc }])
    const hold = Promise.withResolvers<void>()
    a.hold = hold.promise
    const inFlight = call(rig)
    await until('it is sent', () => a.calls.length === 1)
    await rig.reload([{ name: 'b', rpc: b.rpc }])
    const next = await call(rig)
    assert.ok(next.kind === 'responded' && next.nodeName === 'b')
    hold.resolve()
    const finished = await inFlight
    assert.ok(finished.kind === 'responded' && finished.nodeName === 'a', textOf(finished))
    await until('its series end', async () => !(await rig.registry.text()).includes('upstream="a"'))
  })

  test('streams of a removed node are lost, so that they move; its unary calls finish', async () => {
    await using a = await startFakeNode()
    await using b = await startFakeNode()
    a.onGrpcCall = (serverCall) => {
      serverCall.sendHeaders()
      serverCall.onMessage((message) => void serverCall.send(message))
    }
    await using rig = await startWith([{ name: 'a', ws: a.ws, grpc: a.grpc }])
    const { ws, grpc } = rig.upstreams.shared
    const stream = await grpc.open('/geyser.Geyser/Subscribe', {}, { isStream: true })
    const unary = await grpc.open('/geyser.Geyser/Ping', {})
    assert.ok(stream.ok && unary.ok)
    const ends: [string, GrpcEnd][] = []
    stream.stream.onEnd((end) => ends.push(['stream', end]))
    unary.stream.onEnd((end) => ends.push(['unary', end]))
    let echoed = 0
    unary.stream.onData(() => void (echoed += 1))
    const lost: string[] = []
    await until('its WebSocket is open', () => a.wsClients.size === 1)
    const request = { method: 'rootSubscribe', unsubscribe: 'rootUnsubscribe', params: '[]' }
    const ignore = () => {}
    ws.subscribe(request, {
      onReady: ignore,
      onRefused: ignore,
      onNotification: ignore,
      onLost: (why) => lost.push(why),
    })
    await until('it is subscribed', () => a.subscriptions.size === 2)

    await rig.reload([{ name: 'b', ws: b.ws, grpc: b.grpc }])
    assert.deepEqual(lost, ['closed'])
    await until('the stream has ended', () => ends.length === 1)
    assert.deepEqual([ends[0]?.[0], ends[0]?.[1].isFromServer], ['stream', false])
    unary.stream.write(frameMessage(Buffer.from('late')))
    await until('the unary call is served', () => echoed === 1)
    unary.stream.cancel()
    await until('both have ended', () => ends.length === 2)
  })

  test('a drained node keeps its streams, except those that another node can continue', async () => {
    await using a = await startFakeNode()
    await using b = await startFakeNode()
    a.onGrpcCall = (call) => call.sendHeaders()
    await using rig = await startWith([{ name: 'a', grpc: a.grpc }])
    const { grpc } = rig.upstreams.shared
    const ended: string[] = []
    for (const [name, isMovable] of [
      ['kept', undefined],
      ['kept for now', () => false],
      ['moved', () => true],
    ] as const) {
      const opened = await grpc.open('/geyser.Geyser/Subscribe', {}, { isStream: true, isMovable })
      assert.ok(opened.ok)
      opened.stream.onEnd(() => ended.push(name))
    }
    rig.upstreams.drain('a')
    assert.equal(rig.upstreams.status()[0]?.grpcStreams, 3, 'there is no other node')
    rig.upstreams.undrain('a')
    await rig.reload([
      { name: 'a', grpc: a.grpc },
      { name: 'b', grpc: b.grpc },
    ])
    rig.upstreams.drain('a')
    await until('one has ended', () => ended.length > 0)
    assert.deepEqual(ended, ['moved'])
    assert.equal(rig.upstreams.status()[0]?.grpcStreams, 2)
  })

  test('a new credential is used by new connections; a new weight changes no connection', async () => {
    await using a = await startFakeNode()
    const env: Record<string, string> = { KEY: 'first' }
    const node = (weight: number) => ({ name: 'a', rpc: a.rpc, credential: 'env:KEY', weight })
    await using rig = await startWith([node(1)], env)
    await call(rig)
    env['KEY'] = 'second'
    assert.deepEqual(await rig.reload([node(1)]), [{ name: 'a', change: 'replaced' }])
    await call(rig)
    assert.deepEqual(
      a.calls.map(({ headers }) => headers['x-token']),
      ['first', 'second'],
    )
    assert.deepEqual(await rig.reload([node(5)]), [{ name: 'a', change: 'weight' }])
    assert.deepEqual(await rig.reload([node(5)]), [])
  })

  test('a drained node stays drained, also with a new address', async () => {
    await using a = await startFakeNode()
    await using b = await startFakeNode()
    await using rig = await startWith([{ name: 'a', rpc: a.rpc }])
    rig.upstreams.drain('a')
    await rig.reload([{ name: 'a', rpc: b.rpc }])
    assert.equal(rig.upstreams.status()[0]?.state, 'drained')
  })

  test('a list with a secret that cannot be used is refused as a whole', async () => {
    await using a = await startFakeNode()
    await using b = await startFakeNode()
    const env = { LINES: 'two\nlines', NOT_HTTP: 'ws://127.0.0.1:1/?api-key=canary' }
    await using rig = await startWith([{ name: 'a', rpc: a.rpc }], env)
    for (const bad of [
      { name: 'b', rpc: b.rpc, credential: 'env:MISSING' },
      { name: 'b', rpc: b.rpc, credential: 'env:LINES' },
      { name: 'b', rpc: 'env:MISSING' },
      { name: 'b', rpc: 'env:NOT_HTTP' },
    ]) {
      await assert.rejects(rig.reload([{ name: 'c', rpc: b.rpc }, bad]), (error: Error & { code?: string }) => {
        assert.ok(!error.message.includes('canary'))
        return error.code === 'secret-invalid'
      })
      assert.deepEqual(names(rig), ['a'])
      assert.equal((await call(rig)).kind, 'responded')
    }
    assert.equal(b.requests.length, 0)
  })
})

test('an address with a key in its query is used by reference on every interface and shown nowhere', async () => {
  await using a = await startFakeNode()
  const env = { RPC: `${a.rpc}/v1?api-key=canary-rpc`, WS: `${a.ws}/?api-key=canary-ws` }
  await using rig = await startWith([{ name: 'a', rpc: 'env:RPC', ws: 'env:WS' }], env)
  await rig.upstreams.setDedicated([
    { name: 'ded', subscriptionId: 'sub_1', rpc: 'env:RPC', ws: 'env:WS', grpc: '', credential: null },
  ])
  const user = { subscriptionId: 'sub_1', mayUseShared: false }
  await call(rig)
  await rig.upstreams.of(user).forwardAsync(upstreamRequest('getBalance', rpcBody('getBalance')))
  assert.deepEqual(new Set(a.requests.map(({ url }) => url)), new Set(['/v1?api-key=canary-rpc']))
  await until('both have a WebSocket', () => a.handshakeUrls.length >= 2)
  assert.deepEqual(new Set(a.handshakeUrls), new Set(['/?api-key=canary-ws']))
  await a[Symbol.asyncDispose]()
  await until('the loss is seen', async () => {
    await call(rig)
    return rig.upstreams.status().some(({ state }) => state === 'failing')
  })
  const shown = [...rig.log, JSON.stringify(rig.upstreams.status()), await rig.registry.text()].join('\n')
  assert.ok(!shown.includes('canary'), shown)
})
