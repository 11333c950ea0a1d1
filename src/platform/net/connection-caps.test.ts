import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createConnectionCaps, isLoopbackAddress, peerKey } from './connection-caps.ts'

const never = () => false

test('limits open connections of an address, its new ones per second, and all together', () => {
  const clock = createManualClock()
  const caps = createConnectionCaps(
    { connectionsMax: 5, perAddressMax: 3, perAddressPerSecond: 4, isExempt: never },
    clock,
  )
  for (let n = 0; n < 3; n++) assert.equal(caps.enter('192.0.2.1'), undefined)
  assert.equal(caps.enter('192.0.2.1'), 'address-connections')
  caps.leave('192.0.2.1')
  assert.equal(caps.enter('192.0.2.1'), undefined)
  caps.leave('192.0.2.1')
  assert.equal(caps.enter('192.0.2.1'), 'address-rate')
  clock.advance(250)
  assert.equal(caps.enter('192.0.2.1'), undefined)
  assert.equal(caps.enter('192.0.2.2'), undefined)
  assert.equal(caps.enter('192.0.2.3'), undefined)
  assert.equal(caps.enter('192.0.2.4'), 'connections')
  assert.equal(caps.open(), 5)
})

test('loopback is exempt from the limits by address, not from the total', () => {
  const caps = createConnectionCaps({ connectionsMax: 300, perAddressMax: 1 }, createManualClock())
  for (let n = 0; n < 300; n++) assert.equal(caps.enter('127.0.0.1'), undefined)
  assert.equal(caps.enter('::1'), 'connections')
})

test('addresses without connections are dropped, so a flood of them does not fill the memory', () => {
  const clock = createManualClock()
  const caps = createConnectionCaps({ isExempt: never, perAddressPerSecond: 1 }, clock)
  for (let n = 0; n < 100_000; n++) {
    const address = `198.18.${(n >> 8) & 255}.${n & 255}/${n >> 16}`
    if (caps.enter(address) === undefined) caps.leave(address)
  }
  assert.equal(caps.enter('192.0.2.9'), undefined)
  assert.equal(caps.open(), 1)
})

test('an IPv6 /64 counts as one address', () => {
  assert.equal(peerKey('2001:db8:1:2:3:4:5:6'), peerKey('2001:0DB8:1:2::1'))
  assert.notEqual(peerKey('2001:db8:1:2::1'), peerKey('2001:db8:1:3::1'))
  assert.equal(peerKey('::1'), '0:0:0:0::/64')
  assert.equal(peerKey('::ffff:192.0.2.1'), '192.0.2.1')
  assert.equal(peerKey('fe80::1%eth0'), 'fe80:0:0:0::/64')
})

test('recognises loopback addresses', () => {
  for (const address of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'])
    assert(isLoopbackAddress(address), address)
  for (const address of ['0.0.0.0', '::', '10.0.0.1', '128.0.0.1', '::ffff:10.0.0.1'])
    assert(!isLoopbackAddress(address), address)
})
