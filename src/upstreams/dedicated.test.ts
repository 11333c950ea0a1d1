import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type FakeNode, startFakeNode } from '../../test/faults/fake-node.ts'
import { rpcBody, startRig } from '../../test/faults/upstreams-rig.ts'
import { systemClock } from '../platform/process/clock.ts'
import { until } from '../platform/process/test-wait.ts'
import { upstreamRequest } from './http-call.ts'

const user = (subscriptionId: string) => ({ subscriptionId, mayUseShared: true })

describe('dedicated nodes', () => {
  const dedicated = (node: FakeNode, subscriptionId: string, name: string) => ({
    name,
    rpc: node.rpc,
    ws: node.ws,
    grpc: '',
    credential: 'env:KEY',
    subscriptionId,
  })

  test('serve their subscription only, and it is served by no other node', async () => {
    await using shared = await startFakeNode()
    await using own = await startFakeNode()
    await using rig = await startRig({
      clock: systemClock,
      nodes: [{ name: 'a', rpc: shared.rpc }],
      env: { KEY: 'own-secret' },
    })
    const { upstreams } = rig
    await upstreams.setDedicated([dedicated(own, 'sub_1', 'own-1')])
    await upstreams.of(user('sub_1')).forwardAsync(upstreamRequest('getBalance', rpcBody('getBalance')))
    await upstreams.of(user('sub_2')).forwardAsync(upstreamRequest('getBalance', rpcBody('getBalance')))
    assert.deepEqual([own.calls.length, shared.calls.length], [1, 1])
    assert.equal(own.calls[0]?.headers['x-token'], 'own-secret')
    own.fault = 'reset'
    const outcome = await upstreams.of(user('sub_1')).forwardAsync(upstreamRequest('getBalance', rpcBody('getBalance')))
    assert.equal(outcome.kind, 'failed-maybe-sent')
    assert.equal(shared.calls.length, 1, 'no help from the shared pool')
    assert.deepEqual(
      upstreams.status().map(({ name, owner }) => [name, owner]),
      [
        ['a', null],
        ['own-1', 'sub_1'],
      ],
    )
  })

  test('that are still being set when the service ends are not started', async () => {
    await using own = await startFakeNode()
    const rig = await startRig({ clock: systemClock, nodes: [], env: { KEY: 'k' } })
    const setting = rig.upstreams.setDedicated([dedicated(own, 'sub_1', 'own-1')])
    await rig[Symbol.asyncDispose]()
    await setting
    assert.deepEqual(rig.upstreams.status(), [])
  })

  test('are all that a subscription without the bundle has: before and after them it gets no node', async () => {
    await using shared = await startFakeNode()
    await using own = await startFakeNode()
    const nodes = [{ name: 'a', rpc: shared.rpc, ws: shared.ws, grpc: shared.grpc }]
    await using rig = await startRig({ clock: systemClock, nodes, env: { KEY: 'k' } })
    const { upstreams } = rig
    const kindOf = async () => {
      const upstream = upstreams.of({ subscriptionId: 'sub_1', mayUseShared: false })
      const request = { method: 'rootSubscribe', unsubscribe: 'rootUnsubscribe', params: '[]' }
      const opened = await upstream.grpc.open('/geyser.Geyser/Ping', {})
      const events = { onReady() {}, onRefused() {}, onNotification() {}, onLost() {} }
      const isSubscribed = upstream.ws.subscribe(request, events) !== undefined
      const { kind } = await upstream.forwardAsync(upstreamRequest('getBalance', rpcBody('getBalance')))
      return [kind, opened.ok, isSubscribed]
    }
    assert.deepEqual(await kindOf(), ['no-upstream', false, false])
    await upstreams.setDedicated([dedicated(own, 'sub_1', 'own-1')])
    assert.deepEqual(await kindOf(), ['responded', false, true])
    await upstreams.setDedicated([])
    assert.deepEqual(await kindOf(), ['no-upstream', false, false])
    assert.equal(shared.calls.length, 0)
  })

  test('one that cannot be used is listed as failing and does not affect the others of its owner', async () => {
    await using own = await startFakeNode()
    await using rig = await startRig({ clock: systemClock, nodes: [], env: { KEY: 'k' } })
    const { upstreams, registry } = rig
    const broken = { ...dedicated(own, 'sub_1', 'own-2'), credential: 'env:MISSING' }
    await upstreams.setDedicated([dedicated(own, 'sub_1', 'own-1'), broken])
    const states = () => upstreams.status().map(({ name, state }) => [name, state])
    assert.deepEqual(states(), [
      ['own-1', 'healthy'],
      ['own-2', 'failing'],
    ])
    assert.match(upstreams.status()[1]?.reason ?? '', /MISSING is not set/)
    assert.equal(registry.value('sluice_upstreams_dedicated_nodes'), 2)
    assert.equal(registry.value('sluice_upstreams_dedicated_failing'), 1)
    const outcome = await upstreams.of(user('sub_1')).forwardAsync(upstreamRequest('getBalance', rpcBody('getBalance')))
    assert.equal(outcome.kind, 'responded')
  })

  test('a change takes effect at once and keeps the pools of others', async () => {
    await using first = await startFakeNode()
    await using second = await startFakeNode()
    await using rig = await startRig({ clock: systemClock, nodes: [], env: { KEY: 'k' } })
    const { upstreams } = rig
    await upstreams.setDedicated([dedicated(first, 'sub_1', 'n-1'), dedicated(second, 'sub_2', 'n-2')])
    const kept = upstreams.of(user('sub_2'))
    await upstreams.setDedicated([dedicated(second, 'sub_2', 'n-2')])
    assert.equal(upstreams.of(user('sub_2')), kept)
    assert.deepEqual(
      await upstreams.of(user('sub_1')).forwardAsync(upstreamRequest('getBalance', rpcBody('getBalance'))),
      {
        kind: 'no-upstream',
        isSent: false,
      },
    )
    await until('the old connections are closed', () => first.wsClients.size === 0)
    await upstreams.setDedicated([])
    await until('all are closed', () => second.wsClients.size === 0)
  })
})

test('an invalid credential prevents the start; that of a dedicated node affects only its owner', async () => {
  await using node = await startFakeNode()
  const env = { KEY: 'two\nlines', GOOD: 'good' }
  const nodes = [{ name: 'a', ws: node.ws, credential: 'env:KEY' }]
  await assert.rejects(startRig({ clock: systemClock, nodes, env }), { code: 'secret-invalid' })
  await using rig = await startRig({ clock: systemClock, nodes: [], env })
  const own = (subscriptionId: string, credential: string) => ({
    name: `n-${subscriptionId.slice(4)}`,
    rpc: node.rpc,
    ws: '',
    grpc: '',
    credential,
    subscriptionId,
  })
  await rig.upstreams.setDedicated([own('sub_1', 'env:KEY'), own('sub_2', 'env:GOOD'), own('sub_3', 'env:MISSING')])
  const kindFor = async (id: string) =>
    (await rig.upstreams.of(user(id)).forwardAsync(upstreamRequest('getBalance', rpcBody('getBalance')))).kind
  assert.deepEqual(
    [await kindFor('sub_1'), await kindFor('sub_2'), await kindFor('sub_3')],
    ['no-upstream', 'responded', 'no-upstream'],
  )
  assert.ok(!rig.log.join('').includes('lines'))
  await rig.upstreams.setDedicated([own('sub_1', 'env:GOOD'), own('sub_2', 'env:GOOD')])
  assert.equal(await kindFor('sub_1'), 'responded')
})
