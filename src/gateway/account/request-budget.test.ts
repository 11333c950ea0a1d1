import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createPageBudget, PAGES_PER_SECOND } from './request-budget.ts'

test('pages are free up to a rate, each subscription for itself', () => {
  const clock = createManualClock()
  const budget = createPageBudget(clock)
  for (let at = 0; at < 10 * PAGES_PER_SECOND; at++) assert.equal(budget.take('a'), true)
  assert.equal(budget.take('a'), false)
  assert.equal(budget.take('b'), true)
  clock.advance(1000)
  for (let at = 0; at < PAGES_PER_SECOND; at++) assert.equal(budget.take('a'), true)
  assert.equal(budget.take('a'), false)
})

test('what is remembered is bounded, and who is over stays over while there is room', () => {
  const clock = createManualClock()
  const budget = createPageBudget(clock)
  for (let at = 0; at <= 10 * PAGES_PER_SECOND; at++) budget.take('greedy')
  for (let at = 0; at < 9999; at++) budget.take(`quiet-${at}`)
  clock.advance(100)
  budget.take('one more')
  // Room was made by forgetting those who had asked once, a tenth of a second ago.
  for (let at = 0; at < 2; at++) budget.take('greedy')
  assert.equal(budget.take('greedy'), false)
})

test('a page that takes more work takes more of the budget, and what is more than all of it is never served', () => {
  const clock = createManualClock()
  const budget = createPageBudget(clock)
  assert.equal(budget.take('a', 9 * PAGES_PER_SECOND), true)
  assert.equal(budget.take('a', 2 * PAGES_PER_SECOND), false)
  assert.equal(budget.take('a', PAGES_PER_SECOND), true)
})
