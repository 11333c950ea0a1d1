import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Caller } from '../../access/callers.ts'
import { BUILT_IN_PLANS, methodCost } from '../../access/plan.ts'
import { createPermits } from '../../access/quota/permits.ts'
import { ClientSubscriptions, FIRST_ID, type SubscribedClient } from './subscriptions.ts'
import type { UpstreamSubscriber } from './upstream-subscription.ts'

const TOPIC = { nodeUser: { subscriptionId: 'sub', mayUseShared: true }, kind: 'logs', params: '["all"]' } as const
const CALLER = { subscription: { id: 'sub' }, limits: BUILT_IN_PLANS.starter } as unknown as Caller

function start() {
  const sent: string[] = []
  const subscribers: UpstreamSubscriber[] = []
  const permits = createPermits()
  let left = 0
  let overflows = 0
  const client: SubscribedClient = {
    connection: { sendFrame: (frame) => void sent.push(frame.toString()), consumer: { offer() {}, seal() {} } },
    wantsGaps: true,
    sendGap: (id) => void sent.push(`gap ${id}`),
    onOverflow: () => void overflows++,
  }
  const subscriptions = new ClientSubscriptions(client, {
    access: { permits },
    upstreamSubscriptions: {
      size: 0,
      join(_topic, subscriber) {
        subscribers.push(subscriber)
        return { share: () => void sent.push('shared'), leave: () => void left++ }
      },
    },
  })
  const permit = () => {
    const reserved = subscriptions.reserve(CALLER, 'logsSubscribe')
    assert.ok(reserved.ok)
    return reserved
  }
  return {
    subscriptions,
    sent,
    subscribers,
    permits,
    permit,
    left: () => left,
    overflows: () => overflows,
  }
}

describe('ClientSubscriptions', () => {
  it('holds notifications until the response to their subscribe is sent', async () => {
    const { subscriptions, sent, subscribers, permit } = start()
    const subscribing = subscriptions.subscribe(TOPIC, permit())
    subscribers[0]?.onResponse({ kind: 'ready' })
    subscribers[0]?.onFrame(Buffer.from('1'))
    const subscribed = await subscribing
    subscribers[0]?.onFrame(Buffer.from('2'))
    assert.deepEqual(sent, [])
    subscribed.start()
    subscribers[0]?.onGap({ fromSlot: 1, toSlot: 2, reason: 'closed' })
    assert.deepEqual(sent, ['1', '2', 'shared', `gap ${FIRST_ID}`])
  })

  it('reports a gap in its place among the notifications that wait for the response', async () => {
    const { subscriptions, sent, subscribers, permit } = start()
    const subscribing = subscriptions.subscribe(TOPIC, permit())
    subscribers[0]?.onResponse({ kind: 'ready' })
    subscribers[0]?.onFrame(Buffer.from('1'))
    subscribers[0]?.onGap({ fromSlot: 1, toSlot: 2, reason: 'closed' })
    subscribers[0]?.onFrame(Buffer.from('2'))
    const { start: startDelivery } = await subscribing
    assert.deepEqual(sent, [])
    startDelivery()
    assert.deepEqual(sent, ['1', `gap ${FIRST_ID}`, '2', 'shared'])
  })

  it('counts gaps that wait for a response against the same limit', () => {
    const { subscriptions, subscribers, permit, overflows } = start()
    void subscriptions.subscribe(TOPIC, permit())
    for (let gaps = 0; gaps < 10_000; gaps++) subscribers[0]?.onGap({ fromSlot: 1, toSlot: 2, reason: 'closed' })
    assert.ok(overflows() > 0)
  })

  it('delivers a last notification that came before the response, then releases the permit', async () => {
    const { subscriptions, sent, subscribers, permits, permit } = start()
    const subscribing = subscriptions.subscribe(TOPIC, permit())
    subscribers[0]?.onResponse({ kind: 'ready' })
    subscribers[0]?.onFrame(Buffer.from('last'))
    subscribers[0]?.onEnd()
    const subscribed = await subscribing
    assert.equal(permits.taken('sub').wsSubscriptions, 1)
    subscribed.start()
    assert.deepEqual([sent, permits.taken('sub').wsSubscriptions, subscriptions.size], [['last'], 0, 0])
    assert.equal(subscriptions.unsubscribe(subscribed.id), false)
  })

  it('calls onOverflow when too many bytes wait for a response', () => {
    const { subscriptions, subscribers, permit, overflows } = start()
    void subscriptions.subscribe(TOPIC, permit())
    for (let frames = 0; frames < 16; frames++) subscribers[0]?.onFrame(Buffer.alloc(64 * 1024))
    assert.equal(overflows(), 0)
    subscribers[0]?.onFrame(Buffer.alloc(1))
    assert.equal(overflows(), 1)
  })

  it('refuses beyond the limits of plan and connection with the cost of the call and when to try again', async () => {
    const { subscriptions, permit } = start()
    const refusalFor = (wsSubscriptions: number | null) => {
      const reserved = subscriptions.reserve(
        { ...CALLER, limits: { ...CALLER.limits, wsSubscriptions } },
        'logsSubscribe',
      )
      assert.ok(!reserved.ok)
      return reserved.refusal.data
    }
    const cost = methodCost(CALLER.limits, 'logsSubscribe')
    const common = { reason: 'connections', limit: 'wsSubscriptions', cost }
    // Where the plan allows none, no time helps.
    assert.deepEqual(refusalFor(0), { ...common, size: 0 })
    const one = permit()
    assert.deepEqual(refusalFor(1), { ...common, size: 1, retryAfterMs: 5000 })
    one[Symbol.dispose]()
    for (let n = 0; n < 1000; n++) void subscriptions.subscribe(TOPIC, permit())
    assert.deepEqual(refusalFor(null), { ...common, size: 1000, per: 'connection', retryAfterMs: 5000 })
  })

  it('leaves every upstream subscription and releases every permit once', async () => {
    const { subscriptions, subscribers, permits, permit, left } = start()
    const refused = subscriptions.subscribe(TOPIC, permit())
    subscribers[0]?.onResponse({ kind: 'refused', text: 'no' })
    assert.equal((await refused).response.kind, 'refused')
    void subscriptions.subscribe(TOPIC, permit())
    void subscriptions.subscribe(TOPIC, permit())
    assert.equal(subscriptions.unsubscribe(FIRST_ID + 1), true)
    assert.equal(subscriptions.unsubscribe(FIRST_ID + 1), false)
    subscriptions[Symbol.dispose]()
    assert.deepEqual([left(), permits.total().wsSubscriptions, subscriptions.size], [3, 0, 0])
  })
})
