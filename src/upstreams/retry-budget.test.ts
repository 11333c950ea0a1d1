import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { seedFor } from '../core/test-seed.ts'
import { createRetryBudget } from './retry-budget.ts'

test('property: allows at most a tenth of the calls as retries, plus the reserve', () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 5000 }), (wantsRetry) => {
      const budget = createRetryBudget(0.1)
      // Over every window that ends here: what was earned in it and what could have been saved before.
      let retries = 0
      for (const [at, wants] of wantsRetry.entries()) {
        budget.earn()
        if (wants && budget.take()) retries += 1
        assert.ok(retries <= 10 + (at + 1) * 0.1 + 1e-9)
        assert.ok(budget.left >= 0 && budget.left <= 200)
      }
    }),
    seedFor('retry budget', 100),
  )
})

test('allows exactly a tenth of the calls as retries once the reserve is used up', () => {
  const budget = createRetryBudget(0.1)
  let retries = 0
  for (let call = 0; call < 10_000; call++) {
    budget.earn()
    if (budget.take()) retries += 1
  }
  assert.equal(retries, 1010)
})

test('allows no retry with a share of zero', () => {
  const budget = createRetryBudget(0)
  budget.earn()
  assert.equal(budget.take(), false)
})
