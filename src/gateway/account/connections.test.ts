import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { createConnections, type OpenConnection } from './connections.ts'

function setUp() {
  const clock = createManualClock()
  const connections = createConnections({ clock, random: createSeededRandom(1) })
  const closed: string[] = []
  const enter = (subscriptionId: string, name: string, changes: Partial<OpenConnection> = {}) =>
    connections.enter({
      subscriptionId,
      interface: 'ws',
      remoteAddress: '192.0.2.1',
      subscriptions: () => 2,
      bytesOut: () => 10,
      close: () => void closed.push(name),
      ...changes,
    })
  return { clock, connections, closed, enter }
}

test('lists the connections of a subscription for that subscription only', () => {
  const { clock, connections, enter } = setUp()
  enter('sub_a', 'one')
  clock.advance(2500)
  enter('sub_a', 'two', { interface: 'grpc', subscriptions: () => 7, bytesOut: () => 99 })
  enter('sub_b', 'three')
  const [one, two, ...more] = connections.of('sub_a')
  assert.deepEqual([one?.interface, one?.age_seconds, one?.subscriptions, one?.bytes_out], ['ws', 2, 2, 10])
  assert.deepEqual([two?.interface, two?.age_seconds, two?.subscriptions, two?.bytes_out], ['grpc', 0, 7, 99])
  assert.deepEqual(more, [])
  assert.match(one?.id ?? '', /^con_[0-9a-f]{24}$/)
  assert.equal(Date.parse(two?.since ?? '') - Date.parse(one?.since ?? ''), 2500)
  assert.deepEqual(connections.of('sub_c'), [])
})

test('closes a connection for its owner only; a foreign id gets the result of an unknown one', () => {
  const { connections, closed, enter } = setUp()
  enter('sub_a', 'one')
  enter('sub_b', 'two')
  const id = connections.of('sub_b')[0]?.id ?? ''
  assert.equal(connections.close('sub_a', id), false)
  assert.equal(connections.close('sub_a', 'con_000000000000000000000000'), false)
  assert.deepEqual(closed, [])
  assert.equal(connections.close('sub_b', id), true)
  assert.deepEqual(closed, ['two'])
})

test('keeps nothing of a closed connection', () => {
  const { connections, enter } = setUp()
  const leave = enter('sub_a', 'one')
  const stay = enter('sub_a', 'two')
  leave()
  leave()
  assert.equal(connections.of('sub_a').length, 1)
  stay()
  assert.deepEqual(connections.of('sub_a'), [])
  assert.deepEqual(connections.all(10), { total: 0, connections: [] })
})

test('lists all connections for the operator, up to a maximum, and closes any', () => {
  const { connections, closed, enter } = setUp()
  for (let at = 0; at < 5; at++) enter(`sub_${at}`, String(at))
  const { total, connections: shown } = connections.all(2)
  assert.deepEqual([total, shown.map(({ subscription_id }) => subscription_id)], [5, ['sub_0', 'sub_1']])
  assert.equal(connections.closeAny(shown[1]?.id ?? ''), true)
  assert.equal(connections.closeAny('con_x'), false)
  assert.deepEqual(closed, ['1'])
})
