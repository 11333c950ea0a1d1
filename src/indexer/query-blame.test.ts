import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../core/clock.ts'
import { createQueryBlame } from './query-blame.ts'

test('who runs alone when the memory is used up is refused for a while, longer each time', () => {
  const clock = createManualClock()
  const blame = createQueryBlame(clock)
  for (const seconds of [30, 120, 480]) {
    blame.check('a')
    blame.started('a')
    assert.equal(blame.blameRunning(), 'a')
    blame.ended('a', false)
    assert.throws(() => blame.check('a'), { retryAfterSeconds: seconds })
    blame.check('b')
    clock.advance(seconds * 1000)
  }
  blame.check('a')
  clock.advance(2 * 60 * 60_000)
  blame.blame('a')
  assert.throws(() => blame.check('a'), { retryAfterSeconds: 30 })
})

test('several that run become suspects, which run one at a time until the one is found', () => {
  const clock = createManualClock()
  const blame = createQueryBlame(clock)
  for (const each of ['bad', 'good', 'other']) blame.started(each)
  assert.equal(blame.blameRunning(), undefined)
  for (const each of ['bad', 'good', 'other']) blame.ended(each, false)
  blame.started('good')
  assert.throws(() => blame.check('bad'), /one at a time/)
  blame.ended('good', true)
  blame.check('good')
  blame.started('good')
  blame.check('bad')
  blame.started('bad')
  assert.equal(blame.blameRunning(), 'bad')
  blame.ended('bad', false)
  blame.ended('good', false)
  blame.check('good')
  assert.throws(() => blame.check('bad'), /ended by force/)
})
