import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createManualClock } from '../../core/clock.ts'
import { seedFor } from '../../core/test-seed.ts'
import { HEARTBEAT_DEFAULTS, startHeartbeat } from './heartbeat.ts'

test('a peer that answers lives on, one that falls silent at any moment is found within 25 s', () => {
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
          assert.equal(deadAtMs, undefined, 'told once')
          deadAtMs = clock.monotonicMs()
        },
      })
      clock.advance(silentFromMs)
      assert.equal(deadAtMs, undefined, 'not while it answers')
      clock.advance(120_000)
      assert.ok(deadAtMs !== undefined && deadAtMs - silentFromMs <= 25_000, `${deadAtMs}`)
    }),
    seedFor('heartbeat'),
  )
})

test('anything that comes from the peer counts as an answer, and a stopped heart does not beat', () => {
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
