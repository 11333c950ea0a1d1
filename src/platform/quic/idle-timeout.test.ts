import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IdleTimeout } from './idle-timeout.ts'

const OPTIONS = { idleTimeoutMs: 10_000, keepAliveMs: 1000, handshakeTimeoutMs: 4000 }
const NEVER = { firstUnheardAtMs: Number.NEGATIVE_INFINITY, lastElicitingAtMs: Number.NEGATIVE_INFINITY }

test('the shorter idle timeout applies, from the last packet received or the first unacknowledged one sent, and at least three PTOs', () => {
  const idleTimeout = new IdleTimeout(OPTIONS, 100)
  assert.deepEqual([idleTimeout.idleAtMs(NEVER, 50), idleTimeout.handshakeAtMs], [10_100, 4100])
  idleTimeout.peerIdleMs = 3000
  assert.equal(idleTimeout.idleAtMs(NEVER, 50), 3100)
  idleTimeout.peerIdleMs = 30_000
  assert.equal(idleTimeout.idleAtMs(NEVER, 50), 10_100)
  idleTimeout.heardAtMs = 500
  assert.equal(idleTimeout.idleAtMs(NEVER, 50), 10_500)
  assert.equal(idleTimeout.idleAtMs({ ...NEVER, firstUnheardAtMs: 700 }, 50), 10_700)
  assert.equal(idleTimeout.idleAtMs(NEVER, 5000), 15_500)
})

test('a PING is due after both sides were idle, where it is enabled', () => {
  const idleTimeout = new IdleTimeout(OPTIONS, 100)
  assert.equal(idleTimeout.keepAliveAtMs(NEVER), 1100)
  assert.equal(idleTimeout.keepAliveAtMs({ ...NEVER, lastElicitingAtMs: 600 }), 1600)
  const silent = new IdleTimeout({ ...OPTIONS, keepAliveMs: 0 }, 100)
  assert.equal(silent.keepAliveAtMs(NEVER), Number.POSITIVE_INFINITY)
})
