import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldLines } from '../../platform/http/server/fast-path-response.ts'
import { ForwardedResponse, rateLimitHeaders } from './http-response.ts'

test('ForwardedResponse has the same headers as an object and as text', () => {
  const quotas = [
    { limit: 40, remaining: 39, resetMs: 1 },
    { limit: 40.5, remaining: 0, resetMs: 1000 },
    { limit: 100_000_000, remaining: 99_999_998, resetMs: 0 },
    { limit: null, remaining: null, resetMs: 0 },
    { limit: 500_000, remaining: 1, resetMs: 2_592_000_000.5 },
  ]
  for (const quota of quotas) {
    const response = new ForwardedResponse({ body: Buffer.alloc(0) }, quota, 2)
    assert.equal(response.lines, fieldLines(response.headers))
    assert.equal(response.headers['x-ratelimit-cost'], '2')
  }
  const resets = quotas.map((quota) => rateLimitHeaders(quota, 1)['x-ratelimit-reset'])
  assert.deepEqual(resets, ['1', '1', '0', '0', '2592001'], 'whole seconds')
})
