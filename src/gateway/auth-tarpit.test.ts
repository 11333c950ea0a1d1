import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../core/clock.ts'
import { createLateRefusals, FAILURES_MAX } from './auth-tarpit.ts'

function setUp(trustedProxies: string[] = []) {
  const clock = createManualClock()
  const late = createLateRefusals({ trustedProxies }, clock)
  let counted = 0
  return {
    clock,
    late,
    counted: () => counted,
    /** What became of one refusal: answered at once, or else when. */
    refuse(remoteAddress: string, headers: string[] = []) {
      const outcome: { closes?: boolean } = {}
      late.refuse({ remoteAddress, headers }, { inc: () => void (counted += 1) }, (closes) => {
        outcome.closes = closes
      })
      return outcome
    },
  }
}

test('after 20 failures within 10 s further ones wait a second and close; other addresses do not notice', () => {
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

test('who goes on stays late; who is quiet for the window is answered at once again', () => {
  const { clock, refuse } = setUp()
  for (let at = 0; at <= FAILURES_MAX; at++) refuse('192.0.2.1')
  clock.advance(9999)
  assert.deepEqual(refuse('192.0.2.1'), {})
  clock.advance(9999)
  assert.deepEqual(refuse('192.0.2.1'), {})
  clock.advance(10_000)
  assert.deepEqual(refuse('192.0.2.1'), { closes: false })
})

test('twenty in more than the window are not too many', () => {
  const { clock, refuse } = setUp()
  for (let at = 0; at < 200; at++) {
    assert.deepEqual(refuse('192.0.2.1'), { closes: false })
    clock.advance(501)
  }
})

test('a forged x-forwarded-for neither hides an address nor blames another; a trusted proxy speaks for its clients', () => {
  const { refuse } = setUp(['10.0.0.1'])
  for (let at = 0; at < FAILURES_MAX; at++) refuse('192.0.2.1', ['X-Forwarded-For', `198.51.100.${at}`])
  assert.deepEqual(refuse('192.0.2.1', ['x-forwarded-for', '198.51.100.99']), {})
  for (let at = 0; at < FAILURES_MAX; at++) refuse('10.0.0.1', ['x-forwarded-for', '203.0.113.7'])
  assert.deepEqual(refuse('10.0.0.1', ['x-forwarded-for', 'made-up, 203.0.113.7']), {})
  assert.deepEqual(refuse('10.0.0.1', ['x-forwarded-for', '203.0.113.8']), { closes: false })
})

test('one line with a whole IPv6 network is one address', () => {
  const { refuse } = setUp()
  for (let at = 0; at < FAILURES_MAX; at++) refuse(`2001:db8::${at + 1}`)
  assert.deepEqual(refuse('2001:db8::ffff'), {})
  assert.deepEqual(refuse('2001:db8:0:1::1'), { closes: false })
})

test('what is remembered and what waits is bounded', () => {
  const { refuse, clock } = setUp()
  for (let at = 0; at <= FAILURES_MAX; at++) refuse('192.0.2.1')
  for (let at = 0; at < 1999; at++) assert.deepEqual(refuse('192.0.2.1'), {})
  assert.deepEqual(refuse('192.0.2.1'), { closes: true }, 'no room to wait: closed at once')
  clock.advance(1000)
  assert.deepEqual(refuse('192.0.2.1'), {})
  // 10,000 addresses later the first is forgotten.
  for (let at = 0; at < 10_000; at++) refuse(`10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`)
  assert.deepEqual(refuse('192.0.2.1'), { closes: false })
})

test('behind a proxy the forwarded address counts, wherever its header stands among the others', () => {
  const { refuse } = setUp(['10.0.0.1'])
  const from = (address: string) => ['x-forwarded-for', 'not a header name', 'X-Forwarded-For', address]
  const headers = (address: string) => ['accept', 'x-forwarded-for', 'host', 'a', ...from(address).slice(2)]
  for (let at = 0; at < FAILURES_MAX; at++)
    assert.deepEqual(refuse('10.0.0.1', headers('192.0.2.9')), { closes: false })
  assert.deepEqual(refuse('10.0.0.1', headers('192.0.2.9')), {})
  assert.deepEqual(refuse('10.0.0.1', headers('192.0.2.8')), { closes: false })
})
