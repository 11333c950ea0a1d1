import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LinkSubscriptions, type WsSubscribe } from './ws-link-subscriptions.ts'

const REQUEST = { method: 'accountSubscribe', params: '["a"]', unsubscribe: 'accountUnsubscribe' } as WsSubscribe

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
