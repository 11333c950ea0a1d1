import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Caller } from '../../access/authorize.ts'
import { BUILT_IN_PLANS } from '../../access/plan.ts'
import { createPermits } from '../../access/quota/permits.ts'
import { createWsSubscriptions } from './subscriptions.ts'
import type { UpstreamSubscriber } from './upstream-subscription.ts'

const WANTED = { subscriptionId: 'sub', kind: 'logs', params: '["all"]' } as const
const CALLER = { subscription: { id: 'sub' }, limits: BUILT_IN_PLANS.starter } as unknown as Caller

function start() {
  const sent: string[] = []
  const subscribers: UpstreamSubscriber[] = []
  const slots = createPermits()
  let left = 0
  let overflows = 0
  const subscriptions = createWsSubscriptions({
    access: { permits: slots },
    upstreamSubscriptions: {
      size: 0,
      join(_wanted, subscriber) {
        subscribers.push(subscriber)
        return { deliverTo: () => void sent.push('shared'), leave: () => void left++ }
      },
    },
    connection: { sendFrame: (frame) => void sent.push(frame.toString()), consumer: { offer() {}, seal() {} } },
    sendGap: (id) => void sent.push(`gap ${id}`),
    onOverflow: () => void overflows++,
  })
  const permit = () => {
    const reserved = subscriptions.reserve(CALLER)
    assert.ok(reserved.ok)
    return reserved
  }
  return {
    subscriptions,
    sent,
    holders: subscribers,
    slots,
    seat: permit,
    left: () => left,
    overflows: () => overflows,
  }
}

describe('the subscriptions of one connection', () => {
  it('keeps notifications back until the answer to their subscribe is on its way', async () => {
    const { subscriptions, sent, holders: subscribers, seat: permit } = start()
    const subscribing = subscriptions.subscribe(WANTED, permit())
    subscribers[0]?.onResponse({ kind: 'ready' })
    subscribers[0]?.onFrame(Buffer.from('1'))
    const subscribed = await subscribing
    subscribers[0]?.onFrame(Buffer.from('2'))
    assert.deepEqual(sent, [])
    subscribed.start()
    subscribers[0]?.onGap({ fromSlot: 1, toSlot: 2, reason: 'closed' })
    assert.deepEqual(sent, ['1', '2', 'shared', 'gap 1'])
  })

  it('delivers a last word that came before the answer, then frees the seat', async () => {
    const { subscriptions, sent, holders: subscribers, slots, seat: permit } = start()
    const subscribing = subscriptions.subscribe(WANTED, permit())
    subscribers[0]?.onResponse({ kind: 'ready' })
    subscribers[0]?.onFrame(Buffer.from('last'))
    subscribers[0]?.onEnd()
    const subscribed = await subscribing
    assert.equal(slots.taken('sub').wsSubscriptions, 1)
    subscribed.start()
    assert.deepEqual([sent, slots.taken('sub').wsSubscriptions, subscriptions.size], [['last'], 0, 0])
    assert.equal(subscriptions.unsubscribe(subscribed.id), false)
  })

  it('says when too much waits for an answer', () => {
    const { subscriptions, holders: subscribers, seat: permit, overflows } = start()
    void subscriptions.subscribe(WANTED, permit())
    for (let frames = 0; frames < 16; frames++) subscribers[0]?.onFrame(Buffer.alloc(64 * 1024))
    assert.equal(overflows(), 0)
    subscribers[0]?.onFrame(Buffer.alloc(1))
    assert.equal(overflows(), 1)
  })

  it('leaves everything and frees every seat once', async () => {
    const { subscriptions, holders: subscribers, slots, seat: permit, left } = start()
    const refused = subscriptions.subscribe(WANTED, permit())
    subscribers[0]?.onResponse({ kind: 'refused', text: 'no' })
    assert.equal((await refused).response.kind, 'refused')
    void subscriptions.subscribe(WANTED, permit())
    void subscriptions.subscribe(WANTED, permit())
    assert.equal(subscriptions.unsubscribe(2), true)
    assert.equal(subscriptions.unsubscribe(2), false)
    subscriptions[Symbol.dispose]()
    assert.deepEqual([left(), slots.total().wsSubscriptions, subscriptions.size], [3, 0, 0])
  })
})
