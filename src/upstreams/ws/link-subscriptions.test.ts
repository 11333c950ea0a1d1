import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LinkSubscriptions, type WsSubscribe } from './link-subscriptions.ts'

const REQUEST = { method: 'accountSubscribe', params: '["a"]', unsubscribe: 'accountUnsubscribe' } as WsSubscribe

/** The subscriptions of an open connection whose node the test plays. */
function open() {
  const requests: string[] = []
  const at = { ms: 0 }
  const subscriptions = new LinkSubscriptions({
    nodeName: 'a',
    meter: { wsSubscriptions: { inc() {}, dec() {} } } as unknown as ConstructorParameters<
      typeof LinkSubscriptions
    >[0]['meter'],
    isOpen: () => true,
    send: (request) => void requests.push(request),
    monotonicMs: () => at.ms,
    isReserved: () => false,
  })
  const events = { onReady() {}, onNotification() {}, onRefused() {}, onLost() {} }
  /** Subscribes so often; returns the subscriptions. */
  const add = (count: number) => Array.from({ length: count }, () => subscriptions.add(REQUEST, events))
  return {
    subscriptions,
    requests,
    add,
    abandon: (count: number) => add(count).forEach((added) => added.close()),
    respond: (id: number, result?: string) => subscriptions.onResponse({ id, result }, '{}'),
    /** Whether the connection is overdue after so many more milliseconds. */
    isOverdueAfter: (ms: number) => subscriptions.isOverdue((at.ms += ms)),
  }
}

test('a node is overdue when it has been silent for three seconds since the eighth subscribe was sent', () => {
  const on = open()
  on.add(4)
  on.abandon(3)
  assert.equal(on.isOverdueAfter(10_000), false)
  on.add(1)
  assert.equal(on.isOverdueAfter(2999), false, 'the eighth was just sent')
  assert.equal(on.isOverdueAfter(1), true)
})

test('requests that a node dropped do not count once it has responded to anything', () => {
  for (const id of [9, -1]) {
    const on = open()
    on.abandon(8)
    assert.equal(on.isOverdueAfter(2500), false)
    // The last one, a later one of the connection, or one whose id the node could not read.
    on.respond(id)
    assert.equal(on.isOverdueAfter(10_000), false)
    on.add(7)
    assert.equal(on.isOverdueAfter(3000), false, String(id))
  }
})

test('a request that nobody waits for is forgotten after half a minute', () => {
  const on = open()
  for (let at = 0; at < 50; at++) {
    on.abandon(1)
    assert.equal(on.isOverdueAfter(5000), false)
  }
  assert.ok(on.subscriptions.sizeAtNode < 10)
  on.respond(1, '7')
  assert.deepEqual(
    on.requests.at(-1)?.match(/"method":"\w+Unsubscribe","params":\[7\]/)?.length,
    1,
    'it came all the same',
  )
})

test('a subscription counts at the connection until the node has its unsubscribe', () => {
  const on = open()
  const [first, second] = on.add(2)
  on.respond(1, '7')
  first?.close()
  assert.deepEqual([on.subscriptions.size, on.subscriptions.sizeAtNode], [1, 2], 'its unsubscribe waits')
  second?.close()
  assert.deepEqual([on.subscriptions.size, on.subscriptions.sizeAtNode], [0, 1], 'one may still be accepted')
  on.respond(2, '8')
  assert.equal(on.subscriptions.sizeAtNode, 0)
  assert.equal(on.requests.filter((request) => request.includes('Unsubscribe')).length, 2)
})

test('any number of subscribes that were just sent is not overdue', () => {
  const on = open()
  on.add(20_000)
  assert.equal(on.isOverdueAfter(1), false)
})

test('a subscribe counts as sent before the send, which may lose the connection', () => {
  const meter = { wsSubscriptions: { inc() {}, dec() {} } } as unknown as ConstructorParameters<
    typeof LinkSubscriptions
  >[0]['meter']
  let isOpen = false
  const subscriptions = new LinkSubscriptions({
    nodeName: 'a',
    meter,
    isOpen: () => isOpen,
    send: () => subscriptions.lose('too-slow'),
    monotonicMs: () => 0,
    isReserved: () => false,
  })
  const seen: boolean[] = []
  const events = { onReady() {}, onNotification() {}, onRefused() {}, onLost: () => void seen.push(added.isSent) }
  const added = subscriptions.add(REQUEST, events)
  assert.equal(added.isSent, false, 'the connection is not open yet')
  isOpen = true
  subscriptions.sendPending()
  assert.deepEqual(seen, [true])
})
