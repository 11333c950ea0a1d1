import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startFakeNode } from '../../../test/faults/fake-node.ts'
import { startRig } from '../../../test/faults/upstreams-rig.ts'
import { createSeededRandom } from '../../core/random.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { until } from '../../platform/process/test-wait.ts'
import type { UpstreamSubscriber } from './upstream-subscription.ts'
import { createUpstreamSubscriptions, type SharedSubscription } from './upstream-subscriptions.ts'

/** Upstream subscriptions of which the shared nodes take eight. */
async function startEight() {
  const stack = new AsyncDisposableStack()
  const node = stack.use(await startFakeNode())
  const { upstreams } = stack.use(
    await startRig({
      clock: systemClock,
      // What a node without connections could take does not count.
      nodes: [
        { name: 'a', ws: node.ws },
        { name: 'down', ws: 'ws://127.0.0.1:1' },
      ],
      connections: { wsPerNodeMax: 2, wsSubscriptionsMax: 4 },
    }),
  )
  await until('one node is up', () => upstreams.shared.ws.subscriptionsMax === 8)
  const all = createUpstreamSubscriptions({ upstreams, clock: systemClock, random: createSeededRandom(1) })
  const joined: (() => void)[] = []
  const join = (subscriptionId: string, key: string): 'joined' | number => {
    const subscriber: UpstreamSubscriber = {
      ...{ id: 1, subscriptionId },
      ...{ onFrame() {}, onResponse() {}, onGap() {}, onEnd() {} },
    }
    const topic = { nodeUser: { subscriptionId, mayUseShared: true }, kind: 'account', params: `["${key}"]` } as const
    const result = all.join(topic, subscriber)
    if ('limitSize' in result) return result.limitSize
    const shared: SharedSubscription = result
    joined.push(() => shared.leave(subscriber))
    return 'joined'
  }
  return { all, joined, join, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

test('while three quarters of the upstream subscriptions at shared nodes are in use, one subscription creates at most half of them', async () => {
  await using on = await startEight()
  const { all, join, joined } = on
  for (const key of ['1', '2', '3', '4', '5', '6']) assert.equal(join('greedy', key), 'joined')
  assert.equal(join('greedy', '7'), 4)
  assert.equal(join('greedy', '6'), 'joined', 'what exists takes nothing more of a node')
  for (const key of ['7', '8']) assert.equal(join('other', key), 'joined')
  assert.equal(join('greedy', '7'), 'joined', 'that of another customer')
  assert.equal(all.size, 8)
  for (const leave of joined.splice(0, 3)) leave()
  assert.equal(join('greedy', '9'), 'joined')
  assert.equal(join('greedy', '10'), 4)
  for (const leave of joined) leave()
  assert.equal(all.size, 0)
})

test('an upstream subscription counts for one of those who still use it', async () => {
  await using on = await startEight()
  const { all, join, joined } = on
  for (const key of ['1', '2', '3', '4']) assert.equal(join('first', key), 'joined')
  const [leave1, leave2] = joined.splice(0, 2)
  for (const key of ['1', '2', '2']) assert.equal(join('second', key), 'joined')
  assert.equal(join('third', '1'), 'joined')
  leave1?.()
  leave2?.()
  // Each has two now: after two more it has its half.
  for (const [subscriptionId, key] of [
    ['first', '5'],
    ['first', '6'],
    ['second', '7'],
    ['second', '8'],
  ] as const)
    assert.equal(join(subscriptionId, key), 'joined')
  assert.equal(all.size, 8)
  assert.deepEqual([join('first', '9'), join('second', '9'), join('third', '9')], [4, 4, 'joined'])
  for (const leave of joined) leave()
  assert.equal(all.size, 0)
  for (const key of ['1', '2', '3', '4', '5', '6']) assert.equal(join('second', key), 'joined')
  assert.equal(join('first', '7'), 'joined', 'nothing is counted for what has ended')
})
