import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { Calendar, JUMP_HOLD_MS, monthOf, monthStartMs } from './calendar.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

function start(iso: string) {
  const clock = createManualClock(Date.parse(iso))
  const calendar = new Calendar(clock)
  const pass = (ms: number, stepMs = 1000) => {
    for (let left = ms; left > 0; left -= stepMs) {
      clock.advance(Math.min(stepMs, left))
      calendar.update(clock.monotonicMs())
    }
  }
  return { clock, calendar, pass, november: monthOf(Date.parse('2026-11-15T00:00:00Z')) }
}

describe('calendar', () => {
  test('months are counted from January 1970 and have the right start', () => {
    assert.equal(monthOf(0), 0)
    assert.equal(monthOf(Date.UTC(2026, 11, 31, 23, 59, 59, 999)), 56 * 12 + 11)
    assert.equal(monthStartMs(56 * 12 + 12), Date.UTC(2027, 0, 1))
  })

  test('changes month, hour and minute at their first millisecond', () => {
    const { clock, calendar, november } = start('2026-11-30T23:59:58.500Z')
    assert.equal(calendar.untilNextMonthMs(clock.monotonicMs()), 1500)
    clock.advance(1499)
    calendar.update(clock.monotonicMs())
    assert.equal(calendar.month, november)
    assert.equal(calendar.minute * 60_000, Date.parse('2026-11-30T23:59:00Z'))
    clock.advance(1)
    calendar.update(clock.monotonicMs())
    assert.equal(calendar.month, november + 1)
    assert.equal(calendar.hour * HOUR_MS, Date.parse('2026-12-01T00:00:00Z'))
    assert.equal(calendar.minute * 60_000, Date.parse('2026-12-01T00:00:00Z'))
  })

  test('a jump is reported once, and not while it is followed, held or taken back', () => {
    const clock = createManualClock(Date.parse('2026-11-30T12:30:00Z'))
    const jumps: number[] = []
    const calendar = new Calendar(clock, { onJump: (byMs) => jumps.push(byMs) })
    const pass = (ms: number) => {
      for (let left = ms; left > 0; left -= 1000) {
        clock.advance(1000)
        calendar.update(clock.monotonicMs())
      }
    }
    pass(60_000)
    assert.deepEqual(jumps, [])
    clock.setWallMs(clock.nowMs() + DAY_MS)
    pass(2 * HOUR_MS)
    assert.deepEqual(jumps, [DAY_MS])
    clock.setWallMs(clock.nowMs() - DAY_MS)
    pass(60_000)
    clock.setWallMs(clock.nowMs() + DAY_MS)
    pass(60_000)
    assert.deepEqual(jumps, [DAY_MS, -DAY_MS])
  })

  test('the correction of a clock that was wrong at the start is reported as a jump', () => {
    const clock = createManualClock(Date.parse('2020-01-01T00:00:00Z'))
    const jumps: number[] = []
    const recordedMs = clock.nowMs() + DAY_MS
    const calendar = new Calendar(clock, { recordedMs, onJump: (byMs) => jumps.push(byMs) })
    clock.setWallMs(recordedMs)
    clock.advance(1000)
    calendar.update(clock.monotonicMs())
    assert.deepEqual([jumps, calendar.hour * HOUR_MS], [[DAY_MS], recordedMs])
  })

  test('jumps of an hour and a day that do not last change nothing', () => {
    for (const jumpMs of [HOUR_MS, DAY_MS, -HOUR_MS, -DAY_MS]) {
      const { clock, calendar, pass, november } = start('2026-11-30T12:30:00Z')
      clock.setWallMs(clock.nowMs() + jumpMs)
      pass(30 * 60_000 - 1)
      assert.equal(calendar.month, november)
      assert.equal(calendar.hour * HOUR_MS, Date.parse('2026-11-30T12:00:00Z'))
      clock.setWallMs(clock.nowMs() - jumpMs)
      pass(2 * HOUR_MS)
      assert.equal(calendar.month, november)
      assert.equal(calendar.hour * HOUR_MS, Date.parse('2026-11-30T14:00:00Z'))
    }
  })

  test('two short jumps far apart, without a reading between, are not one long jump', () => {
    const { clock, calendar, november } = start('2026-11-30T12:30:00Z')
    for (let jump = 0; jump < 2; jump++) {
      clock.advance(5 * HOUR_MS)
      clock.setWallMs(clock.nowMs() + DAY_MS)
      calendar.update(clock.monotonicMs())
      clock.setWallMs(clock.nowMs() - DAY_MS)
    }
    assert.equal(calendar.month, november)
  })

  test('accepts a jump that lasts for an hour', () => {
    const { clock, calendar, pass, november } = start('2026-11-30T12:30:00Z')
    clock.setWallMs(clock.nowMs() + DAY_MS)
    pass(JUMP_HOLD_MS)
    assert.equal(calendar.month, november)
    pass(2000)
    assert.equal(calendar.month, november + 1)
    assert.equal(calendar.hour * HOUR_MS, Date.parse('2026-12-01T13:00:00Z'))
  })

  test('a month that started too early after an accepted jump does not start twice', () => {
    const { clock, calendar, pass, november } = start('2026-11-30T12:30:00Z')
    clock.setWallMs(clock.nowMs() + DAY_MS)
    pass(JUMP_HOLD_MS + 2000)
    clock.setWallMs(clock.nowMs() - DAY_MS)
    pass(JUMP_HOLD_MS + 2000)
    assert.equal(calendar.hour * HOUR_MS, Date.parse('2026-11-30T14:00:00Z'))
    assert.equal(calendar.month, november + 1)
    pass(DAY_MS, 60_000)
    assert.equal(calendar.month, november + 1)
  })

  test('leaves a month far in the future when the clock is corrected', () => {
    const { clock, calendar, pass, november } = start('2027-12-05T00:00:00Z')
    assert.equal(calendar.month, november + 13)
    clock.setWallMs(Date.parse('2026-11-05T00:00:00Z'))
    pass(JUMP_HOLD_MS + 2000)
    assert.equal(calendar.month, november)
  })

  test('follows a clock that is being adjusted, also after a long time without readings', () => {
    const { clock, calendar, pass } = start('2026-11-30T12:30:00Z')
    for (let second = 0; second < 600; second++) {
      clock.setWallMs(clock.nowMs() + 1)
      pass(1000)
    }
    clock.advance(DAY_MS)
    clock.setWallMs(clock.nowMs() - 40_000)
    calendar.update(clock.monotonicMs())
    assert.equal(calendar.minute * 60_000, clock.nowMs() - (clock.nowMs() % 60_000))
  })
})

describe('a calendar that was started with a wrong clock', () => {
  const RECORDED_MS = Date.parse('2026-11-30T12:00:00Z')
  function startWith(iso: string) {
    const clock = createManualClock(Date.parse(iso))
    const calendar = new Calendar(clock, { recordedMs: RECORDED_MS })
    const pass = (ms: number) => {
      for (let left = ms; left > 0; left -= 1000) {
        clock.advance(Math.min(1000, left))
        calendar.update(clock.monotonicMs())
      }
    }
    const set = (isoTime: string) => {
      clock.setWallMs(Date.parse(isoTime))
      pass(2000)
    }
    const hour = () => new Date(calendar.hour * HOUR_MS).toISOString().slice(0, 13)
    return { calendar, pass, set, hour }
  }

  test('behind what the store has recorded: the right time is adopted at once', () => {
    for (const wrong of ['2000-01-01T00:00:00Z', '2026-09-30T12:00:00Z', '2026-11-30T10:00:00Z']) {
      const { calendar, pass, set, hour } = startWith(wrong)
      pass(20_000)
      set('2026-11-30T12:30:00Z')
      assert.equal(hour(), '2026-11-30T12')
      assert.equal(calendar.month, monthOf(RECORDED_MS))
      // From then on jumps are held as always.
      set('2026-12-30T12:30:00Z')
      assert.equal(hour(), '2026-11-30T12')
      assert.equal(calendar.month, monthOf(RECORDED_MS))
    }
  })

  test('behind: a jump to another time that has passed is held', () => {
    const { set, hour } = startWith('2000-01-01T00:00:00Z')
    set('2010-01-01T00:00:00Z')
    assert.equal(hour(), '2000-01-01T00')
  })

  test('ahead: within ten minutes a jump back, not before the last record, is adopted at once', () => {
    const { calendar, pass, set, hour } = startWith('2027-06-01T00:00:00Z')
    pass(20_000)
    set('2026-11-30T12:30:00Z')
    assert.equal(hour(), '2026-11-30T12')
    assert.equal(calendar.month, monthOf(RECORDED_MS))
  })

  test('a right clock keeps its time: jumps forward, before the last record, or after ten minutes are held', () => {
    for (const { afterMs, jumped } of [
      { afterMs: 20_000, jumped: '2026-12-30T00:00:00Z' },
      { afterMs: 20_000, jumped: '2026-11-30T11:30:00Z' },
      { afterMs: 601_000, jumped: '2026-11-30T12:20:00Z' },
    ]) {
      const { pass, set, hour } = startWith('2026-11-30T14:10:00Z')
      pass(afterMs)
      set(jumped)
      assert.equal(hour(), '2026-11-30T14', jumped)
    }
  })

  test('a record of a clock that was ahead is no reason to adopt a jump to it after the first hour', () => {
    const { pass, set, hour } = startWith('2026-11-29T10:00:00Z')
    pass(HOUR_MS)
    set('2026-12-30T00:00:00Z')
    assert.equal(hour(), '2026-11-29T11')
  })

  test('without a record every jump is held', () => {
    const clock = createManualClock(Date.parse('2000-01-01T00:00:00Z'))
    const calendar = new Calendar(clock)
    clock.setWallMs(RECORDED_MS)
    clock.advance(2000)
    calendar.update(clock.monotonicMs())
    assert.equal(calendar.month, monthOf(Date.parse('2000-01-01T00:00:00Z')))
  })

  test('is settled after an hour without a jump that is held', () => {
    const { clock, calendar, pass } = start('2026-11-30T12:30:00Z')
    pass(JUMP_HOLD_MS - 1)
    assert.equal(calendar.isSettled(clock.monotonicMs()), false)
    pass(1)
    assert.equal(calendar.isSettled(clock.monotonicMs()), true)
    clock.setWallMs(clock.nowMs() + DAY_MS)
    pass(2000)
    assert.equal(calendar.isSettled(clock.monotonicMs()), false)
    clock.setWallMs(clock.nowMs() - DAY_MS)
    pass(2000)
    assert.equal(calendar.isSettled(clock.monotonicMs()), true)
  })
})
