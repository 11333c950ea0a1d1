import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createQuerySuspicion } from './suspicion.ts'

test('who ran at several ends starts alone, longer each time and not for ever; time ends it', () => {
  const clock = createManualClock()
  const suspicion = createQuerySuspicion(clock, { aloneMsMax: 5000 })
  const seen: number[] = []
  for (let ends = 0; ends < 6; ends++) {
    seen.push(suspicion.aloneMs('a'))
    suspicion.ranTogether(['a', 'b'])
    suspicion.check('a')
  }
  assert.deepEqual(seen, [0, 0, 1000, 2000, 4000, 5000])
  clock.advance(10 * 60_000)
  assert.equal(suspicion.aloneMs('a'), 0)
})

test('proof against one ends the suspicion of the others', () => {
  const clock = createManualClock()
  const suspicion = createQuerySuspicion(clock, { aloneMsMax: 5000 })
  for (let ends = 0; ends < 3; ends++) suspicion.ranTogether(['bad', 'good'])
  suspicion.proven('bad')
  assert.deepEqual([suspicion.aloneMs('good'), suspicion.aloneMs('bad')], [0, 2000])
  suspicion.check('good')
  assert.throws(() => suspicion.check('bad'), { type: 'TOO_MANY_SIMULTANEOUS_QUERIES', retryAfterSeconds: 30 })
})

test('each proof refuses for longer, until an hour has passed without one', () => {
  const clock = createManualClock()
  const suspicion = createQuerySuspicion(clock, { aloneMsMax: 5000 })
  for (const seconds of [30, 120, 480, 1800, 1800]) {
    suspicion.proven('a')
    assert.throws(() => suspicion.check('a'), { retryAfterSeconds: seconds })
    clock.advance(seconds * 1000)
    suspicion.check('a')
  }
  clock.advance(60 * 60_000)
  suspicion.proven('a')
  assert.throws(() => suspicion.check('a'), { retryAfterSeconds: 30 })
})
