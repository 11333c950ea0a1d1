import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldLines } from '../../platform/http/server/fast-path-response.ts'
import { NodeResponse } from './rate-limit-headers.ts'

test('the headers of an answer are the same as fields and as text', () => {
  const budgets = [
    { limit: 40, remaining: 39, resetMs: 1 },
    { limit: 40.5, remaining: 0, resetMs: 1000 },
    { limit: 100_000_000, remaining: 99_999_998, resetMs: 0 },
    { limit: null, remaining: null, resetMs: 0 },
    { limit: 500_000, remaining: 1, resetMs: 2_592_000_000.5 },
  ]
  for (const budget of budgets) {
    const response = new NodeResponse({ body: Buffer.alloc(0) }, budget, 2)
    assert.equal(response.lines, fieldLines(response.headers))
    assert.equal(response.headers['x-ratelimit-cost'], '2')
  }
})
