import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../core/clock.ts'
import { createConnectionCaps } from '../platform/net/connection-caps.ts'
import { listenerCaps } from './endpoints.ts'

test('the port takes as many WebSockets as the options allow, in all and of one address, and HTTP besides', () => {
  const clock = createManualClock()
  const caps = createConnectionCaps(listenerCaps({ connectionsMax: 50_000, connectionsPerAddress: 1000 }), clock)
  for (let count = 0; count < 50_000; count++) {
    const address = `10.0.${Math.trunc(count / 1000)}.1`
    assert.equal(caps.enter(address), undefined, `connection ${count}`)
  }
  assert.equal(caps.enter('10.1.0.1'), undefined, 'a request over HTTP')
  assert.deepEqual([caps.sizes.connections, caps.sizes['address-connections']], [60_000, 1200])
})
