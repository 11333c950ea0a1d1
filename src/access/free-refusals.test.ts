import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../core/clock.ts'
import { createFreeRefusals, FREE_REFUSALS } from './free-refusals.ts'

test('a refused request of any size is free where no other was refused before it', () => {
  const clock = createManualClock()
  const free = createFreeRefusals(clock)
  const large = 1024 * 1024 * 1024
  assert.equal(free.take('a', large), true)
  assert.equal(free.take('a', 0), false)
  assert.equal(free.take('b', 0), true)
  clock.advance((FREE_REFUSALS.burst / FREE_REFUSALS.perSecond) * 1000)
  assert.equal(free.take('a', large), true)
})
