import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CustomerEvent } from '../../access/customer-log.ts'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { type ConnectionInterface, createConnections } from './connections.ts'
import { logConnections } from './log-connections.ts'

function setUp() {
  const clock = createManualClock()
  const events: CustomerEvent[] = []
  const unlogged = createConnections({ clock, random: createSeededRandom(1) })
  const connections = logConnections(unlogged, { clock, customerLog: { log: (event) => void events.push(event) } })
  const enter = (server: ConnectionInterface) =>
    connections.enter({
      subscriptionId: 'sub_1',
      interface: server,
      remoteAddress: '192.0.2.1',
      subscriptions: () => 0,
      bytesOut: () => 700,
      close() {},
    })
  return { clock, events, connections, enter }
}

test('logs each connect and disconnect, with duration and bytes', () => {
  const { clock, events, connections, enter } = setUp()
  const leave = enter('ws')
  assert.equal(connections.of('sub_1').length, 1)
  clock.advance(12_000)
  leave({ code: 1013, message: 'too slow' })
  assert.equal(connections.of('sub_1').length, 0)
  const subscription = 'sub_1'
  const remote = '192.0.2.1'
  assert.deepEqual(events, [
    { subscription, message: 'connected', kind: { interface: 'ws' }, details: { remote } },
    {
      subscription,
      message: 'disconnected',
      kind: { interface: 'ws', code: 1013, reason: 'too slow' },
      details: { remote, seconds: 12, bytesOut: 700 },
    },
  ])
})

test('logs the reason of the gateway, of the node or of the protocol, or none', () => {
  const { events, enter } = setUp()
  enter('ws')({ code: 4401, message: 'token revoked' })
  enter('ws')({ code: 1006 })
  enter('ws')({ code: 1001 })
  enter('ws')({ code: 3999 })
  enter('grpc')({ code: 14, message: `the node behind this call is lost${'.'.repeat(500)}` })
  enter('grpc')({ code: 1 })
  enter('grpc')()
  const reasons = events.filter(({ message }) => message === 'disconnected').map(({ kind }) => String(kind?.['reason']))
  assert.deepEqual(
    reasons.map((reason) => reason.slice(0, 33)),
    [
      'token revoked',
      'connection lost',
      'client went away',
      'closed',
      'the node behind this call is lost',
      'cancelled',
      'client went away',
    ],
  )
  assert.ok(reasons.every((reason) => reason.length <= 160))
})
