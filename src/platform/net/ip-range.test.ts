import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressKind, canonicalIp, parseAddressPort, printAddressPort } from './ip-range.ts'

test('classifies literal addresses', () => {
  const cases: Record<string, string | undefined> = {
    '8.8.8.8': 'public',
    '0.1.2.3': 'unspecified',
    '127.9.9.9': 'loopback',
    '10.0.0.1': 'private',
    '172.31.255.255': 'private',
    '172.32.0.0': 'public',
    '192.168.1.1': 'private',
    '169.254.169.254': 'link-local',
    '100.64.0.1': 'carrier-nat',
    '100.128.0.1': 'public',
    '224.0.0.1': 'multicast',
    '239.255.255.255': 'multicast',
    '255.255.255.255': 'broadcast',
    '241.0.0.1': 'reserved',
    '::1': 'loopback',
    '::': 'unspecified',
    '::ffff:8.8.8.8': 'ipv4-mapped',
    'fd00:ec2::254': 'private',
    'fe80::1': 'link-local',
    'ff02::1': 'multicast',
    '2606:4700::1': 'public',
    'fe80::1%eth0': undefined,
    '010.0.0.1': undefined,
    '0x7f.1': undefined,
    '127.1': undefined,
    localhost: undefined,
  }
  for (const [ip, kind] of Object.entries(cases)) assert.equal(addressKind(ip), kind, ip)
})

test('parses an address with a port, and nothing else', () => {
  assert.deepEqual(parseAddressPort('203.0.113.7:20001'), { ip: '203.0.113.7', port: 20001 })
  assert.deepEqual(parseAddressPort('[2606:4700::1]:20001'), { ip: '2606:4700::1', port: 20001 })
  for (const bad of [
    '203.0.113.7',
    '203.0.113.7:0',
    '1.2.3.4:65536',
    '::1:20001',
    'host:20001',
    '1.2.3.4:020',
    '[1.2.3.4]:5',
    '1.2.3.4:5 ',
  ]) {
    assert.equal(parseAddressPort(bad), undefined, bad)
  }
  assert.equal(printAddressPort('2606:4700::1', 5), '[2606:4700::1]:5')
  assert.equal(printAddressPort('1.2.3.4', 5), '1.2.3.4:5')
})

test('an address has one spelling (RFC 5952)', () => {
  for (const [ip, canonical] of [
    ['1.2.3.4', '1.2.3.4'],
    ['2A00:0:0::5', '2a00::5'],
    ['2a00:0000:0000:0000:0000:0000:0000:0005', '2a00::5'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
    ['1:0:0:2:3:0:0:4', '1::2:3:0:0:4'],
    ['1:2:3:4:5:6::8', '1:2:3:4:5:6:0:8'],
    ['0:0:0:0:0:0:0:1', '::1'],
    // It stays an address of IPv6, which no destination may be.
    ['::FFFF:102:304', '::ffff:1.2.3.4'],
    ['::ffff:1.2.3.4', '::ffff:1.2.3.4'],
    ['fe80::1%eth0', 'fe80::1%eth0'],
    ['not an address', 'not an address'],
  ] as const) {
    assert.equal(canonicalIp(ip), canonical, ip)
    assert.equal(addressKind(canonical), addressKind(ip), ip)
  }
  assert.deepEqual(parseAddressPort('[2A00:0:0::5]:20001'), { ip: '2a00::5', port: 20001 })
  assert.deepEqual(parseAddressPort('[::FFFF:102:304]:20001'), { ip: '::ffff:1.2.3.4', port: 20001 })
})
