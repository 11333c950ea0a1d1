import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from './clock.ts'

test('timers run in order of time, then of creation', () => {
  const clock = createManualClock()
  const seen: string[] = []
  clock.setTimer(20, () => seen.push('c'))
  clock.setTimer(10, () => seen.push('a'))
  clock.setTimer(10, () => seen.push('b'))
  clock.advance(9)
  assert.deepEqual(seen, [])
  clock.advance(11)
  assert.deepEqual(seen, ['a', 'b', 'c'])
  assert.equal(clock.pendingTimers(), 0)
})

test('a timer sees the time it was due at, and may set others within the same advance', () => {
  const clock = createManualClock(1000)
  const seen: number[] = []
  clock.setTimer(10, () => {
    seen.push(clock.monotonicMs())
    clock.setTimer(5, () => seen.push(clock.monotonicMs(), clock.nowMs()))
  })
  clock.advance(100)
  assert.deepEqual(seen, [10, 15, 1015])
  assert.equal(clock.monotonicMs(), 100)
})

test('a repeating timer runs once a period until cancelled, also from inside', () => {
  const clock = createManualClock()
  let runs = 0
  const timer = clock.setRepeating(10, () => {
    runs += 1
    if (runs === 3) timer.cancel()
  })
  clock.advance(1000)
  assert.equal(runs, 3)
})

test('setWallMs moves only the wall clock', () => {
  const clock = createManualClock(5000)
  let ran = false
  clock.setTimer(100, () => {
    ran = true
  })
  clock.setWallMs(1_000_000)
  assert.equal(clock.nowMs(), 1_000_000)
  assert.equal(clock.monotonicMs(), 0)
  clock.advance(50)
  assert.equal(clock.nowMs(), 1_000_050)
  assert.equal(ran, false)
})

test('disposing a timer cancels it', () => {
  const clock = createManualClock()
  {
    using _timer = clock.setTimer(1, () => assert.fail('was cancelled'))
  }
  clock.advance(10)
})

test('advanceAsync lets promises settle between timers', async () => {
  const clock = createManualClock()
  const seen: string[] = []
  clock.setTimer(1, () => void Promise.resolve().then(() => seen.push('settled')))
  clock.setTimer(2, () => seen.push('second'))
  await clock.advanceAsync(2)
  assert.deepEqual(seen, ['settled', 'second'])
})

test('a timer that re-arms itself without delay is caught', () => {
  const clock = createManualClock()
  const again = () => void clock.setTimer(0, again)
  again()
  assert.throws(() => clock.advance(1), /re-arms itself/)
})
