import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createAuthTarpit, FAILURES_MAX } from './auth-tarpit.ts'

function setUp(trustedProxies: string[] = []) {
  const clock = createManualClock()
  const tarpit = createAuthTarpit({ trustedProxies }, clock)
  let counted = 0
  return {
    clock,
    counted: () => counted,
    /** Refuses one token; the result has `closes` once the response is sent. */
    refuse(remoteAddress: string, headers: string[] = []) {
      const outcome: { closes?: boolean } = {}
      tarpit.refuse({ remoteAddress, headers }, { inc: () => void (counted += 1) }, (closes) => {
        outcome.closes = closes
      })
      return outcome
    },
  }
}

test('delays refusals by a second and closes the connection after 20 failures of one address within 10 s', () => {
  const { clock, refuse, counted } = setUp()
  for (let at = 0; at < FAILURES_MAX; at++) assert.deepEqual(refuse('192.0.2.1'), { closes: false })
  const waiting = refuse('192.0.2.1')
  assert.deepEqual(waiting, {})
  assert.deepEqual(refuse('192.0.2.2'), { closes: false })
  clock.advance(999)
  assert.deepEqual(waiting, {})
  clock.advance(1)
  assert.deepEqual(waiting, { closes: true })
  assert.equal(counted(), 1)
})

test('keeps delaying while failures go on, and stops after a window without one', () => {
  const { clock, refuse } = setUp()
  for (let at = 0; at <= FAILURES_MAX; at++) refuse('192.0.2.1')
  clock.advance(9999)
  assert.deepEqual(refuse('192.0.2.1'), {})
  clock.advance(9999)
  assert.deepEqual(refuse('192.0.2.1'), {})
  clock.advance(10_000)
  assert.deepEqual(refuse('192.0.2.1'), { closes: false })
})

test('does not delay 20 failures spread over more than the window', () => {
  const { clock, refuse } = setUp()
  for (let at = 0; at < 200; at++) {
    assert.deepEqual(refuse('192.0.2.1'), { closes: false })
    clock.advance(501)
  }
})

test('uses x-forwarded-for of a trusted proxy only', () => {
  const { refuse } = setUp(['10.0.0.1'])
  for (let at = 0; at < FAILURES_MAX; at++) refuse('192.0.2.1', ['X-Forwarded-For', `198.51.100.${at}`])
  assert.deepEqual(refuse('192.0.2.1', ['x-forwarded-for', '198.51.100.99']), {})
  for (let at = 0; at < FAILURES_MAX; at++) refuse('10.0.0.1', ['x-forwarded-for', '203.0.113.7'])
  assert.deepEqual(refuse('10.0.0.1', ['x-forwarded-for', 'made-up, 203.0.113.7']), {})
  assert.deepEqual(refuse('10.0.0.1', ['x-forwarded-for', '203.0.113.8']), { closes: false })
})

test('counts an IPv6 /64 network as one address', () => {
  const { refuse } = setUp()
  for (let at = 0; at < FAILURES_MAX; at++) refuse(`2001:db8::${at + 1}`)
  assert.deepEqual(refuse('2001:db8::ffff'), {})
  assert.deepEqual(refuse('2001:db8:0:1::1'), { closes: false })
})

test('bounds the tracked addresses and the delayed refusals', () => {
  const { refuse, clock } = setUp()
  for (let at = 0; at <= FAILURES_MAX; at++) refuse('192.0.2.1')
  for (let at = 0; at < 1999; at++) assert.deepEqual(refuse('192.0.2.1'), {})
  assert.deepEqual(refuse('192.0.2.1'), { closes: true }, '2000 refusals are delayed already')
  clock.advance(1000)
  assert.deepEqual(refuse('192.0.2.1'), {})
  // After many more addresses than are tracked the first is dropped.
  for (let at = 0; at < 50_000; at++) refuse(`10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`)
  assert.deepEqual(refuse('192.0.2.1'), { closes: false })
})

test('finds x-forwarded-for at any index of the header list, and never in a value', () => {
  const { refuse } = setUp(['10.0.0.1'])
  const from = (address: string) => ['x-forwarded-for', 'not a header name', 'X-Forwarded-For', address]
  const headers = (address: string) => ['accept', 'x-forwarded-for', 'host', 'a', ...from(address).slice(2)]
  for (let at = 0; at < FAILURES_MAX; at++)
    assert.deepEqual(refuse('10.0.0.1', headers('192.0.2.9')), { closes: false })
  assert.deepEqual(refuse('10.0.0.1', headers('192.0.2.9')), {})
  assert.deepEqual(refuse('10.0.0.1', headers('192.0.2.8')), { closes: false })
})
