import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createManualClock } from '../../core/clock.ts'
import { seedFor } from '../../core/test-seed.ts'
import { HEARTBEAT_DEFAULTS, startHeartbeat } from './heartbeat.ts'

test('a peer that replies stays; one that stops at any moment is dead within 25 s', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 60_000 }), fc.integer({ min: 0, max: 900 }), (silentFromMs, responseMs) => {
      const clock = createManualClock()
      let deadAtMs: number | undefined
      const heartbeat = startHeartbeat(HEARTBEAT_DEFAULTS, {
        clock,
        ping: () => {
          const responseAtMs = clock.monotonicMs() + responseMs
          if (responseAtMs < silentFromMs) clock.setTimer(responseMs, () => heartbeat.heard())
        },
        onDead: () => {
          assert.equal(deadAtMs, undefined, 'reported once')
          deadAtMs = clock.monotonicMs()
        },
      })
      clock.advance(silentFromMs)
      assert.equal(deadAtMs, undefined, 'not while it replies')
      clock.advance(120_000)
      assert.ok(deadAtMs !== undefined && deadAtMs - silentFromMs <= 25_000, `${deadAtMs}`)
    }),
    seedFor('heartbeat'),
  )
})

test('any byte from the peer counts as a reply, and no ping is sent after dispose', () => {
  const clock = createManualClock()
  let pings = 0
  const heartbeat = startHeartbeat(HEARTBEAT_DEFAULTS, {
    clock,
    ping: () => void (pings += 1),
    onDead: () => assert.fail('it is alive'),
  })
  for (let second = 0; second < 100; second++) {
    clock.advance(1000)
    heartbeat.heard()
  }
  assert.equal(pings, 10)
  heartbeat[Symbol.dispose]()
  clock.advance(100_000)
  assert.equal(pings, 10)
  assert.equal(clock.pendingTimers(), 0)
})
