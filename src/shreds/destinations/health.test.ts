import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDestinationHealth } from './health.ts'

test('three refusals within ten seconds pause the destination; two, or three over a longer time, do not', () => {
  const health = createDestinationHealth()
  for (const ms of [0, 4000, 10_500, 15_000]) health.refused(ms)
  assert.equal(health.state(), 'sending')
  assert.equal(health.allowance(15_000), 'all')
  health.refused(15_001)
  assert.deepEqual([health.state(), health.allowance(15_002)], ['paused', 'none'])
})

test('sends one packet after a pause, and doubles the pause up to 30 s when it is refused again', () => {
  const health = createDestinationHealth()
  let now = 0
  for (let i = 0; i < 3; i++) health.refused(now)
  for (const pause of [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
    assert.equal(health.allowance(now + pause - 1), 'none')
    now += pause
    assert.equal(health.allowance(now), 'one')
    health.probeSent(now)
    assert.deepEqual([health.state(), health.allowance(now + 1)], ['trying', 'none'])
    now += 200
    health.refused(now)
  }
})

test('ends the pause when a probe is not refused within a second', () => {
  const health = createDestinationHealth()
  for (let i = 0; i < 3; i++) health.refused(0)
  assert.equal(health.allowance(1000), 'one')
  health.probeSent(1000)
  assert.equal(health.allowance(1999), 'none')
  assert.equal(health.allowance(2000), 'all')
  assert.equal(health.state(), 'sending')
  // After a long time without refusals the next pause is short again.
  for (let i = 0; i < 3; i++) health.refused(20_000)
  assert.deepEqual([health.allowance(20_999), health.allowance(21_000)], ['none', 'one'])
})

test('a destination that is refused again soon after a probe pauses longer', () => {
  const health = createDestinationHealth()
  for (let i = 0; i < 3; i++) health.refused(0)
  health.probeSent(1000)
  assert.equal(health.allowance(2000), 'all')
  for (let i = 0; i < 3; i++) health.refused(2500)
  assert.deepEqual([health.allowance(4499), health.allowance(4500)], ['none', 'one'])
})
