import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DestinationRefusal, type DestinationRules, refusalOf, refusalReason } from './rules.ts'

const RULES: DestinationRules = {
  allowLoopback: false,
  allowPrivate: false,
  ownAddresses: new Set(['127.0.0.1', '::1', '5.6.7.8', '10.1.1.1', '2a00::5']),
  sourcePort: 20_000,
}

const TABLE: readonly (readonly [string, number, DestinationRefusal | 'allowed', Partial<DestinationRules>?])[] = [
  ['1.2.3.4', 20_001, 'allowed'],
  ['2a00:1450::1', 20_001, 'allowed'],
  ['1.2.3.4', 1024, 'allowed'],
  ['1.2.3.4', 1023, 'low-port'],
  ['1.2.3.4', 0, 'low-port'],
  ['1.2.3.4', 53, 'low-port'],
  ['1.2.3.4', 65_536, 'low-port'],
  ['1.2.3.4', 1900, 'reflector-port'],
  ['1.2.3.4', 11_211, 'reflector-port'],
  ['example.net', 20_001, 'not-literal'],
  ['0x7f.1', 20_001, 'not-literal'],
  ['127.1', 20_001, 'not-literal'],
  ['010.0.0.1', 20_001, 'not-literal'],
  ['fe80::1%eth0', 20_001, 'not-literal'],
  ['127.0.0.1', 20_001, 'loopback'],
  ['127.9.9.9', 20_001, 'loopback'],
  ['::1', 20_001, 'loopback'],
  ['127.0.0.1', 20_001, 'allowed', { allowLoopback: true }],
  ['127.0.0.1', 20_000, 'source-port', { allowLoopback: true }],
  ['5.6.7.8', 20_000, 'source-port', { allowLoopback: true }],
  ['5.6.7.8', 20_001, 'own-address'],
  ['5.6.7.8', 20_001, 'allowed', { allowLoopback: true }],
  ['2a00::5', 20_001, 'own-address'],
  ['2A00:0::5', 20_001, 'own-address'],
  ['2a00:0:0:0:0:0:0:5', 20_000, 'source-port', { allowLoopback: true }],
  ['10.0.0.1', 20_001, 'private'],
  ['172.31.255.255', 20_001, 'private'],
  ['192.168.1.1', 20_001, 'private'],
  ['fd00::1', 20_001, 'private'],
  ['10.0.0.1', 20_001, 'allowed', { allowPrivate: true }],
  ['10.1.1.1', 20_001, 'own-address', { allowPrivate: true }],
  ['169.254.169.254', 20_001, 'link-local', { allowPrivate: true, allowLoopback: true }],
  ['fe80::1', 20_001, 'link-local', { allowPrivate: true, allowLoopback: true }],
  ['100.64.0.1', 20_001, 'carrier-nat', { allowPrivate: true }],
  ['224.0.0.1', 20_001, 'multicast', { allowPrivate: true, allowLoopback: true }],
  ['239.255.255.255', 20_001, 'multicast'],
  ['ff02::1', 20_001, 'multicast'],
  ['255.255.255.255', 20_001, 'broadcast', { allowPrivate: true, allowLoopback: true }],
  ['0.0.0.0', 20_001, 'unspecified'],
  ['0.1.2.3', 20_001, 'unspecified'],
  ['::', 20_001, 'unspecified'],
  ['::ffff:127.0.0.1', 20_001, 'ipv4-mapped', { allowLoopback: true }],
  ['::ffff:1.2.3.4', 20_001, 'ipv4-mapped'],
  ['::1.2.3.4', 20_001, 'reserved'],
  ['64:ff9b::1.2.3.4', 20_001, 'reserved'],
  ['2002:7f00:1::', 20_001, 'reserved'],
  ['2001:db8::1', 20_001, 'reserved'],
  ['2001:0:1::', 20_001, 'reserved'],
  ['3fff::1', 20_001, 'reserved'],
  ['5f00::1', 20_001, 'reserved'],
  ['192.0.2.1', 20_001, 'reserved'],
  ['192.88.99.1', 20_001, 'reserved'],
  ['198.18.0.1', 20_001, 'reserved'],
  ['203.0.113.9', 20_001, 'reserved'],
  ['240.0.0.1', 20_001, 'reserved'],
]

for (const [ip, port, expected, changes] of TABLE) {
  test(`${ip} port ${port}${changes === undefined ? '' : ` with ${JSON.stringify(changes)}`}: ${expected}`, () => {
    const refusal = refusalOf({ ip, port }, { ...RULES, ...changes })
    assert.equal(refusal ?? 'allowed', expected)
    if (refusal !== undefined) assert.ok(refusalReason(refusal).startsWith('it'))
  })
}
