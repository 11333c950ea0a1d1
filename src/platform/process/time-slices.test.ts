import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTimeSlices } from './time-slices.ts'

test('a slice is spent after its time, and a new one begins once other callbacks have run', async () => {
  let now = 0
  const slices = createTimeSlices(() => now, { sliceMs: 10 })
  now = 9
  assert.equal(slices.isSpent(), false)
  now = 10
  assert.equal(slices.isSpent(), true)
  let hasOtherRun = false
  setImmediate(() => {
    hasOtherRun = true
    now = 25
  })
  await slices.yield()
  assert.equal(hasOtherRun, true)
  assert.equal(slices.isSpent(), false)
  now = 35
  assert.equal(slices.isSpent(), true)
})
