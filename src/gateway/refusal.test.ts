import assert from 'node:assert/strict'
import { test } from 'node:test'
import { grpcStatusOf } from './geyser/refusal.ts'
import { overLimitRefusal, permitRefusal } from './refusal.ts'

const NOW_MS = Date.UTC(2026, 10, 18)
const OVER = {
  ok: false,
  reason: 'over-limit',
  limitName: 'unitsPerSecond',
  limitSize: 15,
  cost: 30,
  retryAfterMs: 1200.5,
} as const

test('a call over a rate has limit, size, cost and time, and the same in the message of a gRPC status', () => {
  const refusal = overLimitRefusal({ ...OVER, remaining: 0, limit: 150, resetMs: 10_000 }, 'Subscribe', NOW_MS)
  assert.deepEqual(refusal.data, {
    reason: 'rate',
    limit: 'unitsPerSecond',
    size: 15,
    cost: 30,
    retryAfterMs: 1201,
    resetsAt: '2026-11-18T00:00:01.200Z',
  })
  assert.equal(refusal.retryAfterSeconds, 2)
  assert.match(
    String(grpcStatusOf(refusal).message),
    /15 .*; limit: unitsPerSecond; cost: 30; try again in 1201 ms \(2026-11-18T00:00:01\.200Z\)$/,
  )
})

test('a call without a permit has limit, size, cost and time too', () => {
  const refusal = permitRefusal({ ok: false, reason: 'over-limit', limitName: 'grpcStreams', limitSize: 1 }, 10)
  const { data, retryAfterSeconds } = refusal
  assert.deepEqual(data, { reason: 'connections', limit: 'grpcStreams', size: 1, cost: 10, retryAfterMs: 5000 })
  assert.equal(retryAfterSeconds, 5)
  assert.match(String(grpcStatusOf(refusal).message), /; limit: grpcStreams; cost: 10; try again in 5000 ms$/)
})
