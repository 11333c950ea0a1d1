import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isServiceError } from '../../core/error.ts'
import { createAddressSet, createClientAddress } from './client-address.ts'

function from(remoteAddress: string, ...forwarded: string[]) {
  return { socket: { remoteAddress }, headersDistinct: forwarded.length > 0 ? { 'x-forwarded-for': forwarded } : {} }
}

test('without trusted proxies x-forwarded-for is ignored', () => {
  const addressOf = createClientAddress([])
  assert.equal(addressOf(from('192.0.2.1', '1.1.1.1')), '192.0.2.1')
  assert.equal(addressOf(from('::ffff:192.0.2.1')), '192.0.2.1')
  assert.equal(addressOf(from('127.0.0.1', '1.1.1.1')), '127.0.0.1')
})

test('behind trusted proxies the right-most untrusted hop is the client, whatever precedes it', () => {
  const addressOf = createClientAddress(['10.0.0.0/8', '::1', '2001:db8::/32'])
  assert.equal(addressOf(from('10.0.0.1', '6.6.6.6, 203.0.113.9')), '203.0.113.9')
  assert.equal(addressOf(from('10.0.0.1', '6.6.6.6, 203.0.113.9, 10.1.1.1')), '203.0.113.9')
  assert.equal(addressOf(from('::ffff:10.0.0.1', '6.6.6.6', '203.0.113.9')), '203.0.113.9')
  assert.equal(addressOf(from('::1', '[2001:db8::5], 2001:db8::6')), '2001:db8::5')
  assert.equal(addressOf(from('10.0.0.1')), '10.0.0.1')
  assert.equal(addressOf(from('10.0.0.1', '6.6.6.6, garbage')), '10.0.0.1')
  assert.equal(addressOf(from('10.0.0.1', '6.6.6.6, 0x7f.1')), '10.0.0.1')
  assert.equal(addressOf(from('10.0.0.1', `6.6.6.6${', 10.0.0.2'.repeat(100)}`)), '10.0.0.2')
})

test('an IPv6 network does not match IPv4', () => {
  const inSet = createAddressSet(['::/0'])
  assert(inSet('2001:db8::1'))
  assert(!inSet('8.8.8.8') && !inSet('::ffff:8.8.8.8'))
  for (const bad of ['10.0.0.0/33', 'localhost', '10.1', '::/129', '10.0.0.0/x']) {
    assert.throws(
      () => createAddressSet([bad]),
      (error) => isServiceError(error, 'config-invalid'),
    )
  }
})

test('an address without a prefix matches only itself, and a prefix longer than the address is refused', () => {
  const isListed = createAddressSet(['192.0.2.1', '2001:db8::1'])
  const addresses = ['192.0.2.1', '192.0.2.2', '2001:db8::1', '2001:db8::2', '::ffff:192.0.2.1']
  assert.deepEqual(addresses.map(isListed), [true, false, true, false, true])
  assert.ok(createAddressSet(['2001:db8::/64'])('2001:db8::ffff'))
  for (const entry of [
    '192.0.2.0/33',
    '2001:db8::/129',
    '192.0.2.0/-1',
    '192.0.2.0/x',
    '192.0.2.0/',
    '192.0.2.0/8/8',
    'example.org',
  ])
    assert.throws(() => createAddressSet([entry]), /neither an address nor a network/, entry)
})
