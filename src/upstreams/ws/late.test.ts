import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { startFakeNode } from '../../../test/faults/fake-node.ts'
import { startRig } from '../../../test/faults/upstreams-rig.ts'
import { type Clock, createManualClock } from '../../core/clock.ts'
import { until } from '../../platform/process/test-wait.ts'
import { account, subscribe } from '../test-subscribe.ts'

const NO_EVENTS = { onReady() {}, onRefused() {}, onNotification() {}, onLost() {} }

/** A node that never responds to a subscribe, and one that does; every connection is open. */
async function mutedAndWorking(clock: Clock) {
  const stack = new AsyncDisposableStack()
  const muted = stack.use(await startFakeNode())
  const working = stack.use(await startFakeNode())
  const rig = stack.use(
    await startRig({
      clock,
      nodes: [
        { name: 'muted', ws: muted.ws },
        { name: 'working', ws: working.ws },
      ],
    }),
  )
  await until('both are connected', () => rig.upstreams.status().every(({ wsConnections }) => wsConnections === 1))
  await until('both have the slot subscription', () => muted.subscriptions.size + working.subscriptions.size === 2)
  muted.wsHold = new Promise(() => {})
  return { rig, muted, shared: rig.upstreams.shared, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

test('a node that does not respond to a subscribe, or refuses all, does not get all new ones', async () => {
  const clock = createManualClock()
  await using on = await mutedAndWorking(clock)
  const refuse = () => {
    on.muted.wsHold = undefined
    on.muted.wsError = '{"code":-32005,"message":"unhealthy"}'
  }
  for (const change of [() => {}, refuse]) {
    change()
    const seen = Array.from({ length: 2 }, () => subscribe(on.shared, account(randomUUID())))
    const bad = seen.find(({ handle }) => handle?.nodeName === 'muted')
    assert.ok(bad)
    await until('it is refused, or the other one is live', () => seen.some(({ ready }) => ready === 1))
    if (on.muted.wsError === undefined) clock.advance(2000)
    else await until('it is refused', () => bad.refused !== '')
    bad.handle?.close()
    const next = Array.from({ length: 5 }, () => subscribe(on.shared, account(randomUUID())))
    assert.deepEqual([...new Set(next.map(({ handle }) => handle?.nodeName))], ['working'])
    for (const { handle } of [...seen, ...next]) handle?.close()
    clock.advance(200)
  }
  // It is tried again.
  const [a, b] = [subscribe(on.shared, account('a')), subscribe(on.shared, account('b'))]
  assert.equal(new Set([a.handle?.nodeName, b.handle?.nodeName]).size, 2)
  assert.equal(
    on.shared.ws.subscribe(account('c'), NO_EVENTS, { except: 'working' })?.nodeName,
    'muted',
    'never the one that is left out',
  )
})

test('a node is not late with a subscribe that waited for the connection', async () => {
  const clock = createManualClock()
  await using a = await startFakeNode()
  await using b = await startFakeNode()
  await using rig = await startRig({
    clock,
    nodes: [
      { name: 'a', ws: a.ws },
      { name: 'b', ws: b.ws },
    ],
    connections: { wsPerNodeMax: 8, wsSubscriptionsMax: 1 },
  })
  const shared = rig.upstreams.shared
  await until('both are connected', () => rig.upstreams.status().every(({ wsConnections }) => wsConnections === 1))
  const first = [subscribe(shared, account('x')), subscribe(shared, account('y'))]
  await until('both connections are full', () => first.every(({ ready }) => ready === 1))
  for (const node of [a, b]) node.wsHold = new Promise(() => {})
  const second = subscribe(shared, account('z'))
  clock.advance(2000)
  await until('it is sent over a new connection', () => second.handle?.isSent === true)
  second.handle?.close()
  const next = Array.from({ length: 4 }, () => subscribe(shared, account(randomUUID())).handle?.nodeName)
  assert.deepEqual(new Set(next), new Set(['a', 'b']))
})

test('a connection on which eight subscribes have had no response for three seconds is lost', async () => {
  const clock = createManualClock()
  await using on = await mutedAndWorking(clock)
  const losses = () =>
    on.rig.registry.value('sluice_upstreams_ws_losses_total', { upstream: 'muted', reason: 'stalled' }) ?? 0
  const send = async (count: number) => {
    const before = on.muted.texts.length
    for (let at = 0; at < count; at++)
      on.shared.ws.subscribe(account(randomUUID()), NO_EVENTS, { except: 'working' })?.close()
    await until('the node has them', () => on.muted.texts.length === before + count)
  }
  await send(7)
  clock.advance(10_000)
  assert.equal(losses(), 0)
  await send(1)
  clock.advance(2900)
  assert.equal(losses(), 0)
  clock.advance(500)
  assert.equal(losses(), 1)
})
