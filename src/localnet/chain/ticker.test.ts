import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { startTicker } from './ticker.ts'

test('ticks are scheduled from the start: a late one does not delay the next', () => {
  const clock = createManualClock()
  const ticks: number[] = []
  // A clock whose timers fire 30 ms late, as on a busy machine.
  const late = { ...clock, setTimer: (delayMs: number, run: () => void) => clock.setTimer(delayMs + 30, run) }
  using _ticker = startTicker(() => 400, { clock: late, tick: () => ticks.push(clock.monotonicMs()) })
  clock.advance(4000)
  assert.deepEqual(ticks, [430, 830, 1230, 1630, 2030, 2430, 2830, 3230, 3630])
})

test('ticks missed by more than the maximum are skipped', () => {
  const clock = createManualClock()
  let skippedMs = 0
  const suspended = { ...clock, monotonicMs: () => clock.monotonicMs() + skippedMs }
  let ticks = 0
  using _ticker = startTicker(() => 400, { clock: suspended, tick: () => ticks++ })
  clock.advance(400)
  skippedMs = 3_600_000
  clock.advance(800)
  assert.equal(ticks, 3)
})

test('a stopped ticker does not tick', () => {
  const clock = createManualClock()
  let ticks = 0
  startTicker(() => 400, { clock, tick: () => ticks++ })[Symbol.dispose]()
  clock.advance(4000)
  assert.equal(ticks, 0)
  assert.equal(clock.pendingTimers(), 0)
})

test('a new period counts from the next tick', () => {
  const clock = createManualClock()
  const ticks: number[] = []
  let periodMs = 400
  using _ticker = startTicker(() => periodMs, { clock, tick: () => ticks.push(clock.monotonicMs()) })
  clock.advance(500)
  periodMs = 200
  clock.advance(800)
  assert.deepEqual(ticks, [400, 800, 1000, 1200])
})
