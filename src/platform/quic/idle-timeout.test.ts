import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Patience } from './idle-timeout.ts'

const OPTIONS = { idleTimeoutMs: 10_000, keepAliveMs: 1000, handshakeTimeoutMs: 4000 }
const NEVER = { firstUnheardAtMs: Number.NEGATIVE_INFINITY, lastElicitingAtMs: Number.NEGATIVE_INFINITY }

test('the shorter of both idle times counts, from the last word heard or the first one unanswered, but never less than three probes', () => {
  const patience = new Patience(OPTIONS, 100)
  assert.deepEqual([patience.idleAtMs(NEVER, 50), patience.handshakeAtMs], [10_100, 4100])
  patience.peerIdleMs = 3000
  assert.equal(patience.idleAtMs(NEVER, 50), 3100)
  patience.peerIdleMs = 30_000
  assert.equal(patience.idleAtMs(NEVER, 50), 10_100)
  patience.heardAtMs = 500
  assert.equal(patience.idleAtMs(NEVER, 50), 10_500)
  assert.equal(patience.idleAtMs({ ...NEVER, firstUnheardAtMs: 700 }, 50), 10_700)
  assert.equal(patience.idleAtMs(NEVER, 5000), 15_500)
})

test('a sign of life is due after a silence on both sides, where it is wanted', () => {
  const patience = new Patience(OPTIONS, 100)
  assert.equal(patience.keepAliveAtMs(NEVER), 1100)
  assert.equal(patience.keepAliveAtMs({ ...NEVER, lastElicitingAtMs: 600 }), 1600)
  const silent = new Patience({ ...OPTIONS, keepAliveMs: 0 }, 100)
  assert.equal(silent.keepAliveAtMs(NEVER), Number.POSITIVE_INFINITY)
})
