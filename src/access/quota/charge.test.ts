import assert from 'node:assert/strict'
import { test } from 'node:test'
import { wholeUnits } from './charge.ts'

test('the remaining budget is an integer and never below zero', () => {
  assert.deepEqual([-3, -0.5, 0, 0.9, 2.7, 5].map(wholeUnits), [0, 0, 0, 0, 2, 5])
})
