import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { startTicker } from './ticker.ts'

test('beats are counted from the start: a late one does not delay the next', () => {
  const clock = createManualClock()
  const beats: number[] = []
  // A clock whose timers fire 30 ms late, as on a busy machine.
  const late = { ...clock, setTimer: (delayMs: number, run: () => void) => clock.setTimer(delayMs + 30, run) }
  using _ticker = startTicker(400, { clock: late, beat: () => beats.push(clock.monotonicMs()) })
  clock.advance(4000)
  assert.deepEqual(beats, [430, 830, 1230, 1630, 2030, 2430, 2830, 3230, 3630])
})

test('beats that were missed by far are not made up', () => {
  const clock = createManualClock()
  let skippedMs = 0
  const suspended = { ...clock, monotonicMs: () => clock.monotonicMs() + skippedMs }
  let beats = 0
  using _ticker = startTicker(400, { clock: suspended, beat: () => beats++ })
  clock.advance(400)
  skippedMs = 3_600_000
  clock.advance(800)
  assert.equal(beats, 3)
})

test('a stopped ticker is silent', () => {
  const clock = createManualClock()
  let beats = 0
  startTicker(400, { clock, beat: () => beats++ })[Symbol.dispose]()
  clock.advance(4000)
  assert.equal(beats, 0)
  assert.equal(clock.pendingTimers(), 0)
})
