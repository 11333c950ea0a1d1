import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FakeNode, startFakeNode } from '../../../test/faults/fake-node.ts'
import { startFaultProxy } from '../../../test/faults/fault-proxy.ts'
import { advanceUntil, startRig } from '../../../test/faults/upstreams-rig.ts'
import { createManualClock } from '../../core/clock.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { until } from '../../platform/process/test-wait.ts'
import { account, subscribe } from '../test-subscribe.ts'

async function oneNode(node: FakeNode, more: object = {}) {
  const rig = await startRig({
    clock: systemClock,
    nodes: [{ name: 'a', ws: node.ws }],
    env: { KEY: 'node-secret' },
    ...more,
  })
  const shared = rig.upstreams.shared
  return { ...rig, shared, [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose]() }
}

test('shares one connection between subscriptions, each with its own notifications, unchanged', async () => {
  await using node = await startFakeNode()
  await using on = await oneNode(node, { nodes: [{ name: 'a', ws: node.ws, credential: 'env:KEY' }] })
  const first = subscribe(on.shared, account('x'))
  const second = subscribe(on.shared, { method: 'logsSubscribe', unsubscribe: 'logsUnsubscribe', params: '["all"]' })
  await until('both are live', () => first.ready === 1 && second.ready === 1)
  node.notify('accountSubscribe', '{"context":{"slot":1},"value":{"rentEpoch":18446744073709551615}}')
  await until('the notification is here', () => first.frames.length === 1)
  assert.deepEqual(first.frames, [
    '{"jsonrpc":"2.0","method":"accountNotification","params":{"result":{"context":{"slot":1},"value":{"rentEpoch":18446744073709551615}},"subscription":ID}}',
  ])
  assert.equal(second.frames.length, 0)
  assert.equal(node.wsClients.size, 1)
  assert.equal(node.handshakes[0]?.['x-token'], 'node-secret')
  assert.deepEqual(
    on.upstreams.status().map(({ wsConnections, wsSubscriptions }) => [wsConnections, wsSubscriptions]),
    [[1, 2]],
  )
})

test('unsubscribes an id that equal subscriptions share with the last of them', async () => {
  await using node = await startFakeNode()
  await using on = await oneNode(node)
  const first = subscribe(on.shared, account('x'))
  const second = subscribe(on.shared, account('x'))
  await until('both are live', () => first.ready === 1 && second.ready === 1)
  node.notify('accountSubscribe', '1')
  await until('both are notified', () => first.frames.length === 1 && second.frames.length === 1)
  first.handle?.close()
  node.notify('accountSubscribe', '2')
  await until('the second is notified', () => second.frames.length === 2)
  assert.equal(first.frames.length, 1)
  second.handle?.close()
  second.handle?.close()
  await until(
    'it has ended at the node',
    () => ![...node.subscriptions.values()].some(({ method }) => method === 'accountSubscribe'),
  )
  assert.equal(node.texts.filter((text) => text.includes('Unsubscribe')).length, 1)
})

test('never sends an unsubscribe after a subscribe that may have the same id at the node', async () => {
  await using node = await startFakeNode()
  await using on = await oneNode(node)
  const first = subscribe(on.shared, account('x'))
  await until('the first is live', () => first.ready === 1)
  const hold = Promise.withResolvers<void>()
  node.wsHold = hold.promise
  // Equal for the node, although the text differs; subscribed while the first is about to end.
  const second = subscribe(on.shared, { ...account('x'), params: '[ "x" ]' })
  const abandoned = subscribe(on.shared, { ...account('x'), params: '["x" ]' })
  await until('the node has all', () => node.texts.length === 3)
  first.handle?.close()
  abandoned.handle?.close()
  hold.resolve()
  await until('the second is live', () => second.ready === 1)
  const third = subscribe(on.shared, account('y'))
  await until('the node has responded to earlier requests', () => third.ready === 1)
  node.notify('accountSubscribe', '{"context":{"slot":1},"value":1}')
  await until('the notification is here', () => third.frames.length === 1)
  assert.equal(second.frames.length, 1)
  assert.ok(!node.texts.some((text) => text.includes('Unsubscribe')))
  second.handle?.close()
  await until('it ends with the last of them', () => node.subscriptions.size === 2)
})

test("keeps the gateway's slot subscription when a customer ends its own", async () => {
  await using node = await startFakeNode()
  await using on = await oneNode(node)
  const slots = subscribe(on.shared, { method: 'slotSubscribe', unsubscribe: 'slotUnsubscribe', params: '[]' })
  await until('it is live', () => slots.ready === 1)
  node.tick()
  await until('it is notified', () => slots.frames.length >= 1)
  slots.handle?.close()
  node.tick()
  await until('the gateway still is', () => on.shared.bestSlot === 1002)
  assert.equal(node.texts.filter((text) => text.includes('slotUnsubscribe')).length <= 1, true)
})

test('passes on a refusal of the node, and unsubscribes what was closed before the response', async () => {
  await using node = await startFakeNode()
  await using on = await oneNode(node)
  node.wsError = '{"code":-32602,"message":"Invalid Request: Invalid pubkey provided"}'
  const refused = subscribe(on.shared, account('bad'))
  await until('it is refused', () => refused.refused !== '')
  assert.match(refused.refused, /"error":\{"code":-32602,"message":"Invalid Request: Invalid pubkey provided"\}/)
  node.wsError = undefined
  const hasty = subscribe(on.shared, account('x'))
  hasty.handle?.close()
  await until('the node has ended it', () => node.texts.some((text) => text.includes('accountUnsubscribe')))
  assert.equal(hasty.ready, 0)
  assert.equal(on.upstreams.status()[0]?.wsSubscriptions, 0)
})

test('does not unsubscribe what the node has ended', async () => {
  await using node = await startFakeNode()
  await using on = await oneNode(node)
  const once = subscribe(on.shared, {
    method: 'signatureSubscribe',
    unsubscribe: 'signatureUnsubscribe',
    params: '["s"]',
  })
  await until('it is live', () => once.ready === 1)
  once.handle?.close(true)
  const after = subscribe(on.shared, account('x'))
  await until('a later one is live', () => after.ready === 1)
  assert.ok(!node.texts.some((text) => text.includes('signatureUnsubscribe')))
})

test('F6: reports a lost connection to all subscriptions at once, and restores them at another node within 3 s', async () => {
  await using a = await startFakeNode()
  await using b = await startFakeNode()
  await using rig = await startRig({
    clock: systemClock,
    nodes: [
      { name: 'a', ws: a.ws },
      { name: 'b', ws: b.ws },
    ],
  })
  const shared = rig.upstreams.shared
  await until('both are connected', () => a.wsClients.size === 1 && b.wsClients.size === 1)
  const seen = Array.from({ length: 20 }, (_, at) => subscribe(shared, account(`k${at}`)))
  await until('all are live', () => seen.every(({ ready }) => ready === 1))
  assert.deepEqual([a.subscriptions.size, b.subscriptions.size], [11, 11], 'evenly spread, with one for slots each')
  const startedMs = performance.now()
  for (const client of a.wsClients) client.terminate()
  await until('the half on it is lost', () => seen.filter(({ lost }) => lost !== '').length === 10)
  const again = seen.filter(({ lost }) => lost !== '').map((_, at) => subscribe(shared, account(`k${at}-again`)))
  await until('all are live again', () => again.every(({ ready }) => ready === 1))
  assert.ok(performance.now() - startedMs < 3000)
  await until('the lost connection is made again', () => a.wsClients.size === 1)
  for (const { handle } of [...seen, ...again]) handle?.close()
  await until('nothing is left behind', () => a.subscriptions.size + b.subscriptions.size === 2)
  assert.deepEqual(
    rig.upstreams.status().map(({ wsSubscriptions }) => wsSubscriptions),
    [0, 0],
  )
  assert.equal(rig.registry.value('sluice_upstreams_ws_losses_total', { upstream: 'a', reason: 'closed' }), 1)
})

test('replaces a connection without slots while the chain advances, and none while it does not', async () => {
  const clock = createManualClock()
  await using a = await startFakeNode()
  await using b = await startFakeNode()
  await using proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: a.ports.ws } })
  await using rig = await startRig({
    clock,
    nodes: [
      { name: 'a', ws: `ws://127.0.0.1:${proxy.port}` },
      { name: 'b', ws: b.ws },
    ],
  })
  const shared = rig.upstreams.shared
  const slots = () => rig.upstreams.status().map(({ slot }) => slot)
  await until('both are connected and subscribed', () => a.subscriptions.size === 1 && b.subscriptions.size === 1)
  await until('both are notified', () => {
    a.tick()
    b.tick()
    return slots().every((slot) => slot > 1000)
  })
  const held = subscribe(shared, account('x'))
  const other = subscribe(shared, account('y'))
  await until('one is on each', () => held.ready + other.ready === 2)
  const quietMs = clock.monotonicMs() + 12_000
  await advanceUntil(clock, 'some time has passed', () => clock.monotonicMs() >= quietMs)
  assert.deepEqual([held.lost, other.lost], ['', ''], 'no connection is replaced')

  proxy.add({ type: 'timeout', timeoutMs: 0, stream: 'downstream' })
  const tookMs = await advanceUntil(clock, 'one is lost', () => {
    b.tick()
    return held.lost !== '' || other.lost !== ''
  })
  assert.ok(tookMs <= 4000, `${tookMs} ms`)
  assert.deepEqual([held.lost, other.lost].toSorted(), ['', 'stalled'])
})

test('a connection without slots is stalled when the pool is 1.6 s ahead, whatever the length of a slot', async () => {
  for (const [slotMs, slots] of [
    [400, 4],
    [200, 8],
  ] as const) {
    const clock = createManualClock()
    await using a = await startFakeNode()
    await using b = await startFakeNode()
    for (const node of [a, b]) node.samples = `[{"numSlots":${60_000 / slotMs},"samplePeriodSecs":60}]`
    const nodes = [
      { name: 'a', rpc: a.rpc, ws: a.ws },
      { name: 'b', rpc: b.rpc, ws: b.ws },
    ]
    await using rig = await startRig({ clock, nodes })
    const { slotLength } = rig.upstreams.shared
    await until('both are subscribed', () => a.subscriptions.size === 1 && b.subscriptions.size === 1)
    await until('the length is known', () => slotLength.isLearned && slotLength.ms() === slotMs)
    await until('both are notified', () => {
      a.tick()
      b.tick()
      return rig.upstreams.status().every(({ slot }) => slot > 1000)
    })
    const stalled = () =>
      rig.registry.value('sluice_upstreams_ws_losses_total', { upstream: 'a', reason: 'stalled' }) ?? 0
    b.tick(a.slot + slots - b.slot)
    const quietMs = clock.monotonicMs() + 5000
    await advanceUntil(clock, 'some time has passed', () => clock.monotonicMs() >= quietMs)
    assert.equal(stalled(), 0, `${slots} slots of ${slotMs} ms`)
    b.tick()
    await advanceUntil(clock, 'it is replaced', () => stalled() === 1, { withinMs: 5000 })
  }
})

test('retries an unreachable node at growing intervals, and connects when it is back', async () => {
  const clock = createManualClock()
  await using node = await startFakeNode()
  await using proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: node.ports.ws } })
  await proxy.disable()
  await using rig = await startRig({ clock, nodes: [{ name: 'a', ws: `ws://127.0.0.1:${proxy.port}` }] })
  const shared = rig.upstreams.shared
  await until(
    'the first attempt failed',
    () => (rig.registry.value('sluice_upstreams_ws_losses_total', { upstream: 'a', reason: 'connect' }) ?? 0) === 1,
  )
  assert.equal(subscribe(shared, account('x')).handle, undefined, 'no node can take it')
  await advanceUntil(clock, 'some time has passed', () => clock.monotonicMs() > 20_000)
  const attempts = rig.registry.value('sluice_upstreams_ws_losses_total', { upstream: 'a', reason: 'connect' }) ?? 0
  assert.ok(attempts >= 10 && attempts <= 40, `${attempts} attempts in 20 s`)
  await proxy.enable()
  const tookMs = await advanceUntil(clock, 'it is connected', () => rig.upstreams.status()[0]?.wsConnections === 1)
  assert.ok(tookMs <= 2000, `${tookMs} ms`)
})

test('opens connections up to the maximum, then uses the other node, then refuses', async () => {
  await using a = await startFakeNode()
  await using b = await startFakeNode()
  await using rig = await startRig({
    clock: systemClock,
    nodes: [
      { name: 'a', ws: a.ws },
      { name: 'b', ws: b.ws },
    ],
    connections: { wsPerNodeMax: 2, wsSubscriptionsMax: 3 },
  })
  const shared = rig.upstreams.shared
  const seen = Array.from({ length: 12 }, (_, at) => subscribe(shared, account(`k${at}`)))
  await until('all are live', () => seen.every(({ ready }) => ready === 1))
  assert.deepEqual([a.wsClients.size, b.wsClients.size], [2, 2])
  assert.equal(subscribe(shared, account('more')).handle, undefined)
  seen[0]?.handle?.close()
  assert.notEqual(subscribe(shared, account('more')).handle, undefined)
})

test('sends no more subscribes than a connection may have, also where each is closed before its response', async () => {
  await using node = await startFakeNode()
  await using on = await oneNode(node, { connections: { wsPerNodeMax: 2, wsSubscriptionsMax: 3 } })
  await until('it is connected', () => node.subscriptions.size === 1)
  node.wsHold = new Promise(() => {})
  await until('all places are taken', () => {
    const { handle } = subscribe(on.shared, account('x'))
    handle?.close()
    return handle === undefined
  })
  assert.ok(node.texts.filter((text) => text.includes('accountSubscribe')).length <= 6)
})

test('moves the subscriptions of a drained node and opens no connection to it', async () => {
  await using node = await startFakeNode()
  await using on = await oneNode(node)
  const first = subscribe(on.shared, account('x'))
  await until('it is live', () => first.ready === 1)
  on.upstreams.drain('a')
  assert.equal(first.lost, 'closed')
  assert.equal(subscribe(on.shared, account('x')).handle, undefined)
  await until('the node is left', () => node.wsClients.size === 0)
  on.upstreams.undrain('a')
  await until('the node is back', () => node.wsClients.size === 1)
})
