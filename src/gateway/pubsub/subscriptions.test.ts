import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Caller } from '../../access/authorize.ts'
import { BUILT_IN_PLANS } from '../../access/plan.ts'
import { createSlots } from '../../access/quota/permits.ts'
import { createWsSubscriptions } from './subscriptions.ts'
import type { FeedHolder } from './upstream-subscription.ts'

const WANTED = { subscriptionId: 'sub', kind: 'logs', params: '["all"]' } as const
const CALLER = { subscription: { id: 'sub' }, limits: BUILT_IN_PLANS.starter } as unknown as Caller

function start() {
  const sent: string[] = []
  const holders: FeedHolder[] = []
  const slots = createSlots()
  let left = 0
  let overflows = 0
  const subscriptions = createWsSubscriptions({
    access: { slots },
    feeds: {
      size: 0,
      join(_wanted, holder) {
        holders.push(holder)
        return { deliverTo: () => void sent.push('shared'), leave: () => void left++ }
      },
    },
    connection: { sendFrame: (frame) => void sent.push(frame.toString()), taker: { offer() {}, seal() {} } },
    sendGap: (id) => void sent.push(`gap ${id}`),
    onOverflow: () => void overflows++,
  })
  const seat = () => {
    const reserved = subscriptions.reserve(CALLER)
    assert.ok(reserved.ok)
    return reserved
  }
  return { subscriptions, sent, holders, slots, seat, left: () => left, overflows: () => overflows }
}

describe('the subscriptions of one connection', () => {
  it('keeps notifications back until the answer to their subscribe is on its way', async () => {
    const { subscriptions, sent, holders, seat } = start()
    const subscribing = subscriptions.subscribe(WANTED, seat())
    holders[0]?.onAnswer({ kind: 'ready' })
    holders[0]?.onFrame(Buffer.from('1'))
    const subscribed = await subscribing
    holders[0]?.onFrame(Buffer.from('2'))
    assert.deepEqual(sent, [])
    subscribed.start()
    holders[0]?.onGap({ fromSlot: 1, toSlot: 2, reason: 'closed' })
    assert.deepEqual(sent, ['1', '2', 'shared', 'gap 1'])
  })

  it('delivers a last word that came before the answer, then frees the seat', async () => {
    const { subscriptions, sent, holders, slots, seat } = start()
    const subscribing = subscriptions.subscribe(WANTED, seat())
    holders[0]?.onAnswer({ kind: 'ready' })
    holders[0]?.onFrame(Buffer.from('last'))
    holders[0]?.onEnd()
    const subscribed = await subscribing
    assert.equal(slots.taken('sub').wsSubscriptions, 1)
    subscribed.start()
    assert.deepEqual([sent, slots.taken('sub').wsSubscriptions, subscriptions.size], [['last'], 0, 0])
    assert.equal(subscriptions.unsubscribe(subscribed.id), false)
  })

  it('says when too much waits for an answer', () => {
    const { subscriptions, holders, seat, overflows } = start()
    void subscriptions.subscribe(WANTED, seat())
    for (let frames = 0; frames < 16; frames++) holders[0]?.onFrame(Buffer.alloc(64 * 1024))
    assert.equal(overflows(), 0)
    holders[0]?.onFrame(Buffer.alloc(1))
    assert.equal(overflows(), 1)
  })

  it('leaves everything and frees every seat once', async () => {
    const { subscriptions, holders, slots, seat, left } = start()
    const refused = subscriptions.subscribe(WANTED, seat())
    holders[0]?.onAnswer({ kind: 'refused', text: 'no' })
    assert.equal((await refused).answer.kind, 'refused')
    void subscriptions.subscribe(WANTED, seat())
    void subscriptions.subscribe(WANTED, seat())
    assert.equal(subscriptions.unsubscribe(2), true)
    assert.equal(subscriptions.unsubscribe(2), false)
    subscriptions[Symbol.dispose]()
    assert.deepEqual([left(), slots.total().wsSubscriptions, subscriptions.size], [3, 0, 0])
  })
})
