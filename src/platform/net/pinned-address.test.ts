import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createManualClock } from '../../core/clock.ts'
import { createPinnedAddress, hostHeader, objectToAddress, parseRemoteAddress } from './pinned-address.ts'

const remote = (host: string) => ({ host, port: 8899, secure: false, path: '/' })

test('link-local and metadata addresses are refused whatever the operator allows', () => {
  for (const ip of [
    '169.254.169.254',
    '169.254.0.1',
    'fd00:ec2::254',
    'fd20:ce::254',
    'fd00:c1::a9fe:a9fe',
    'FD00:0EC2:0:0:0:0:0:254',
    'fe80::1',
    '100.100.100.200',
    '::ffff:169.254.169.254',
    '::ffff:127.0.0.1',
    '64:ff9b::a9fe:a9fe',
    '0.0.0.0',
    '::',
    '224.0.0.1',
    '255.255.255.255',
  ]) {
    assert.notEqual(objectToAddress(ip, true), undefined, ip)
    assert.notEqual(objectToAddress(ip, false), undefined, ip)
  }
})

test('loopback, private and carrier addresses need allowPrivate; public ones do not', () => {
  for (const ip of ['127.0.0.1', '::1', '10.1.2.3', '172.16.0.1', '192.168.1.1', 'fd12::1', '100.64.0.1']) {
    assert.equal(objectToAddress(ip, true), undefined, ip)
    assert.match(objectToAddress(ip, false) ?? '', /allowPrivate/, ip)
  }
  for (const ip of ['8.8.8.8', '2606:4700::1111', '172.32.0.1']) assert.equal(objectToAddress(ip, false), undefined, ip)
})

test('resolves a name once, and again only after a loss', async () => {
  let asked = 0
  const pin = createPinnedAddress(
    remote('node.example'),
    { allowPrivate: false },
    {
      lookup: async () => {
        asked += 1
        return ['198.41.0.4']
      },
    },
  )
  assert.equal(pin.known(), undefined)
  assert.deepEqual(await Promise.all([pin.current(), pin.current()]), [
    { ok: true, ip: '198.41.0.4' },
    { ok: true, ip: '198.41.0.4' },
  ])
  assert.equal(pin.known(), '198.41.0.4')
  await pin.current()
  assert.equal(asked, 1)
  pin.lost('broken')
  assert.equal(pin.known(), undefined)
  await pin.current()
  assert.equal(asked, 2)
})

test('refuses a name that moves to a forbidden address after the first connection (DNS rebinding)', async () => {
  const responses = [['198.41.0.4'], ['169.254.169.254'], ['198.41.0.4', '127.0.0.1'], ['198.41.0.9']]
  const pin = createPinnedAddress(
    remote('node.example'),
    { allowPrivate: false },
    { lookup: async () => responses.shift() ?? [] },
  )
  assert.deepEqual(await pin.current(), { ok: true, ip: '198.41.0.4' })
  pin.lost('broken')
  const moved = await pin.current()
  assert.ok(!moved.ok && moved.reason === 'refused')
  const mixed = await pin.current()
  assert.ok(!mixed.ok && mixed.reason === 'refused', 'one forbidden address among several refuses all')
  assert.deepEqual(await pin.current(), { ok: true, ip: '198.41.0.9' }, 'an honest move is followed')
})

test('uses the next of several addresses when one is unreachable, and stays with a reachable one', async () => {
  const lookup = async () => ['2606:4700::1111', '198.41.0.4']
  const pin = createPinnedAddress(remote('node.example'), { allowPrivate: false }, { lookup })
  const ips: string[] = []
  for (const how of ['broken', 'unreachable', 'broken', 'unreachable'] as const) {
    const outcome = await pin.current()
    ips.push(outcome.ok ? outcome.ip : outcome.reason)
    pin.lost(how)
  }
  assert.deepEqual(ips, ['2606:4700::1111', '2606:4700::1111', '198.41.0.4', '198.41.0.4'])
  assert.deepEqual(await pin.current(), { ok: true, ip: '2606:4700::1111' })
})

test('a failed lookup keeps a pinned address; a name that was never resolved is an error', async () => {
  let fails = false
  const lookup = async () => {
    if (fails) throw new Error('SERVFAIL')
    return ['198.41.0.4']
  }
  const pin = createPinnedAddress(remote('node.example'), { allowPrivate: false }, { lookup })
  await pin.current()
  fails = true
  pin.lost('broken')
  assert.deepEqual(await pin.current(), { ok: true, ip: '198.41.0.4' })
  const other = await createPinnedAddress(remote('other.example'), { allowPrivate: false }, { lookup }).current()
  assert.ok(!other.ok && other.reason === 'unresolved')
})

test('a lookup that hangs is waited for at most a second where an address is pinned; its late result is used', async () => {
  const clock = createManualClock()
  const hanging = Promise.withResolvers<readonly string[]>()
  const responses: Promise<readonly string[]>[] = [Promise.resolve(['198.41.0.4']), hanging.promise]
  let asked = 0
  const lookup = () => responses[asked++] ?? Promise.resolve([])
  const pin = createPinnedAddress(remote('node.example'), { allowPrivate: false }, { lookup, clock })
  await pin.current()
  pin.lost('broken')
  const waiting = pin.current()
  clock.advance(1000)
  assert.deepEqual(await waiting, { ok: true, ip: '198.41.0.4' })
  assert.deepEqual(await pin.current(), { ok: true, ip: '198.41.0.4' }, 'the next connection does not wait')
  assert.equal(asked, 2, 'one lookup at a time')
  hanging.resolve(['198.41.0.9'])
  await nextTurn()
  assert.deepEqual(await pin.current(), { ok: true, ip: '198.41.0.9' })
})

test('parses an origin with a path; refuses credentials, queries and other schemes', () => {
  const http = ['http:', 'https:']
  assert.deepEqual(parseRemoteAddress('https://node.example/v1', http), {
    host: 'node.example',
    port: 443,
    secure: true,
    path: '/v1',
  })
  assert.deepEqual(parseRemoteAddress('http://[::1]:8899', http), { host: '::1', port: 8899, secure: false, path: '/' })
  // The URL parser normalises unusual spellings of IPv4, which are then checked.
  assert.equal(parseRemoteAddress('http://0x7f.1:1', http)?.host, '127.0.0.1')
  for (const text of [
    'ftp://a',
    'ws://a',
    'a:80',
    'http://u:p@a',
    'http://a/?api-key=1',
    'http://a?',
    'http://a/#x',
    '',
  ]) {
    assert.equal(parseRemoteAddress(text, http), undefined, text)
  }
})

test('the Host header omits the default port of each scheme', () => {
  assert.equal(hostHeader({ host: 'a.example', port: 443, secure: true, path: '/' }), 'a.example')
  assert.equal(hostHeader({ host: 'a.example', port: 80, secure: true, path: '/' }), 'a.example:80')
  assert.equal(hostHeader({ host: '::1', port: 8899, secure: false, path: '/' }), '[::1]:8899')
})
