import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createQueryQuarantine } from './quarantine.ts'

test('a subscription that ran at several ends starts exclusively, for longer each time up to the maximum, for ten minutes', () => {
  const clock = createManualClock()
  const quarantine = createQueryQuarantine(clock, { exclusiveMsMax: 5000 })
  const seen: number[] = []
  for (let ends = 0; ends < 6; ends++) {
    seen.push(quarantine.exclusiveMs('a'))
    quarantine.suspect(['a', 'b'])
    quarantine.check('a')
  }
  assert.deepEqual(seen, [0, 0, 1000, 2000, 4000, 5000])
  clock.advance(10 * 60_000)
  assert.equal(quarantine.exclusiveMs('a'), 0)
})

test('refusing one subscription clears the others', () => {
  const clock = createManualClock()
  const quarantine = createQueryQuarantine(clock, { exclusiveMsMax: 5000 })
  for (let ends = 0; ends < 3; ends++) quarantine.suspect(['bad', 'good'])
  quarantine.refuse('bad')
  assert.deepEqual([quarantine.exclusiveMs('good'), quarantine.exclusiveMs('bad')], [0, 2000])
  quarantine.check('good')
  assert.throws(() => quarantine.check('bad'), { type: 'TOO_MANY_SIMULTANEOUS_QUERIES', retryAfterSeconds: 30 })
})

test('each refusal is longer, until an hour has passed without one', () => {
  const clock = createManualClock()
  const quarantine = createQueryQuarantine(clock, { exclusiveMsMax: 5000 })
  for (const seconds of [30, 120, 480, 1800, 1800]) {
    quarantine.refuse('a')
    assert.throws(() => quarantine.check('a'), { retryAfterSeconds: seconds })
    clock.advance(seconds * 1000)
    quarantine.check('a')
  }
  clock.advance(60 * 60_000)
  quarantine.refuse('a')
  assert.throws(() => quarantine.check('a'), { retryAfterSeconds: 30 })
})
