import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { framePayload } from '../../platform/ws/frame.ts'
import type { Upstreams } from '../../upstreams/service.ts'
import { readNotification } from '../../upstreams/ws/frame-id.ts'
import type { WsSubscriptionEvents } from '../../upstreams/ws/link-subscriptions.ts'
import type { CatchUpRequest } from './catch-up.ts'
import { createDeliveries } from './deliveries.ts'
import { type SubscribeResponse, UpstreamSubscription } from './upstream-subscription.ts'

const resultAt = (slot: number) => `{"context":{"slot":${slot}},"value":{"lamports":${slot}}}`
const deletedAt = (slot: number) => `{"context":{"slot":${slot}},"value":{"lamports":0,"data":["","base64"]}}`

/** An account subscription with one subscriber, at a node that the test plays; `slots` are those it has delivered. */
function open(params = '["x"]', names: readonly string[] = ['a']) {
  const used: string[] = []
  const responses: SubscribeResponse[] = []
  const clock = createManualClock()
  const nodes: WsSubscriptionEvents[] = []
  const reads: CatchUpRequest[] = []
  const slots: number[] = []
  const texts: string[] = []
  const upstream = {
    bestSlot: 1000,
    slotLength: { inSlots: (ms: number) => Math.ceil(ms / 400) },
    ws: {
      subscribe(_request: object, events: WsSubscriptionEvents, { except }: { except?: string } = {}) {
        const nodeName = names.find((name) => name !== except)
        if (nodeName === undefined) return undefined
        nodes.push(events)
        used.push(nodeName)
        return { nodeName, isSent: true, close() {} }
      },
    },
  }
  const subscription = new UpstreamSubscription(
    { dedicatedTo: undefined, kind: 'account', params },
    {
      upstreams: { shared: upstream } as unknown as Upstreams,
      clock,
      random: createSeededRandom(1),
      catchUp: { start: (_subscription, request) => void reads.push(request) },
      deliveries: createDeliveries(clock, { defer: (run) => run() }),
      onLeave() {},
      onEnd() {},
    },
  )
  subscription.join({
    ...{ id: 1, subscriptionId: 'sub' },
    onResponse: (response) => void responses.push(response),
    onFrame(frame) {
      const text = framePayload(frame).toString()
      texts.push(text)
      slots.push(Number(/"slot":(\d+)/.exec(text)?.[1]))
    },
    onGap() {},
    onEnd() {},
  })
  return {
    clock,
    used,
    responses,
    refuse: (text: string) => nodes.at(-1)?.onRefused(text),
    slots,
    texts,
    reads,
    ready: () => nodes.at(-1)?.onReady(),
    /** The node is lost after a notification of this slot, and another one has taken its place. */
    moveAfter(slot?: number, result?: string) {
      this.ready()
      if (slot !== undefined) this.notify(slot, result)
      nodes.at(-1)?.onLost('closed')
      clock.advance(1000)
      this.ready()
    },
    lose() {
      nodes.at(-1)?.onLost('closed')
      clock.advance(1000)
    },
    /** What was missed according to the read that the last loss started. */
    missed: (slot: number) => reads.at(-1)?.onMissed({ result: resultAt(slot), slot, isLast: false }),
    missedDeletion: (slot: number) =>
      reads.at(-1)?.onMissed({ result: deletedAt(slot), slot, isLast: false, isDeleted: true }),
    notify(slot: number, result = resultAt(slot)) {
      const text = `{"jsonrpc":"2.0","method":"accountNotification","params":{"result":${result},"subscription":7}}`
      const frame = Buffer.from(text)
      const at = readNotification(frame)
      assert.ok(at)
      nodes.at(-1)?.onNotification(frame, at)
    },
  }
}

// Notifications whose slot is older than the last slot delivered are dropped.
test('after a loss an account does not go back behind the state that was read in the meantime', () => {
  const on = open()
  on.moveAfter(100)
  // The read was served by a node that is ahead of the new one.
  on.missed(120)
  on.notify(110)
  on.notify(119)
  on.notify(120)
  // A lower slot of the same node is on another fork.
  on.notify(115)
  assert.deepEqual(on.slots, [100, 120, 120, 115])
})

test('the same where the new node has notified before the read ends', () => {
  const on = open()
  on.moveAfter(100)
  on.notify(105)
  on.missed(120)
  on.notify(110)
  on.notify(121)
  assert.deepEqual(on.slots, [100, 105, 120, 121])
})

test('a chain that was reset is followed after such a read too', () => {
  const on = open()
  on.moveAfter(10_000)
  on.missed(10_020)
  on.notify(5)
  assert.deepEqual(on.slots, [10_000, 10_020, 5])
})

test('processed state that was read may be of a dropped fork: the node that notifies is believed', () => {
  const on = open('["x",{"commitment":"processed"}]')
  on.moveAfter(100)
  on.missed(120)
  on.notify(118)
  assert.deepEqual(on.slots, [100, 120, 118])
})

test('a deletion is reported after a loss only of an account that was notified and is not known to be deleted', () => {
  const never = open()
  never.moveAfter()
  never.missedDeletion(120)
  assert.deepEqual(never.slots, [])
  never.notify(121)
  assert.deepEqual(never.slots, [121])

  const deleted = open()
  deleted.moveAfter(100)
  deleted.missedDeletion(120)
  assert.match(deleted.texts.at(-1) ?? '', /"value":\{"lamports":0,"data":\["","base64"\]\}\},"subscription":1\}\}$/)
  deleted.missedDeletion(130)
  assert.deepEqual(deleted.slots, [100, 120])
  deleted.missed(140)
  deleted.missedDeletion(150)
  assert.deepEqual(deleted.slots, [100, 120, 140, 150])

  const known = open()
  // As nodes order the members.
  known.moveAfter(100, '{"context":{"slot":100},"value":{"data":["","base64"],"lamports":0,"space":0}}')
  known.missedDeletion(120)
  assert.deepEqual(known.slots, [100])

  const parsed = open()
  parsed.moveAfter(100, '{"context":{"slot":100},"value":{"data":{"parsed":{"lamports":0}},"lamports":5}}')
  parsed.missedDeletion(120)
  assert.deepEqual(parsed.slots, [100, 120])
})

test('the state after a loss is read at the slot to which the gap is reported', () => {
  const on = open()
  on.moveAfter(100)
  assert.equal(on.reads.at(-1)?.minSlot, 1000)
})

const refusal = (code: number) => `{"jsonrpc":"2.0","error":{"code":${code},"message":"x"},"id":1}`

test('a node that does not respond to a subscribe is not the next one where there is another', () => {
  const two = open('["x"]', ['a', 'b'])
  two.clock.advance(2500)
  two.clock.advance(100)
  assert.deepEqual(two.used, ['a', 'b'])
  two.ready()
  assert.deepEqual(two.responses, [{ kind: 'ready' }])
  const one = open()
  one.clock.advance(2500)
  one.clock.advance(100)
  assert.deepEqual(one.used, ['a', 'a'])
})

test('a refusal is passed on when a second node has refused too, where it is about the params, and where no other is left', () => {
  const twice = open('["x"]', ['a', 'b'])
  twice.refuse(refusal(-32_005))
  assert.deepEqual([twice.used, twice.responses], [['a', 'b'], []])
  twice.refuse(refusal(-32_601))
  assert.deepEqual(twice.responses, [{ kind: 'refused', text: refusal(-32_601) }])
  assert.equal(twice.used.length, 2)
  for (const [code, names] of [
    [-32_602, ['a', 'b']],
    [-32_005, ['a']],
  ] as const) {
    const on = open('["x"]', names)
    on.refuse(refusal(code))
    assert.deepEqual([on.used, on.responses.length], [['a'], 1], String(code))
  }
})

test('a node that refuses what another one had accepted is not the next one', () => {
  const on = open('["x"]', ['a', 'b'])
  on.moveAfter(100)
  on.lose()
  on.refuse(refusal(-32_005))
  on.clock.advance(1000)
  assert.deepEqual(on.used.slice(-2), ['a', 'b'])
})
