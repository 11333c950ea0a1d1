import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { startWorkTimer } from './work-timer.ts'

test('pauses do not count', () => {
  const clock = createManualClock()
  let ends = 0
  using timer = startWorkTimer(clock, 1000, () => ends++)
  clock.advance(600)
  timer.pause(true)
  timer.pause(true)
  clock.advance(5000)
  assert.equal(ends, 0)
  timer.pause(false)
  timer.pause(false)
  clock.advance(399)
  assert.equal(ends, 0)
  clock.advance(1)
  assert.equal(ends, 1)
})

test('a timer that is disposed of does not end, paused or not', () => {
  const clock = createManualClock()
  for (const isPaused of [false, true]) {
    const timer = startWorkTimer(clock, 1000, () => assert.fail('it ended'))
    timer.pause(isPaused)
    timer[Symbol.dispose]()
    clock.advance(2000)
  }
})
