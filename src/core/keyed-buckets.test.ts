import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBucketMemory, createKeyedBuckets } from './keyed-buckets.ts'
import { SharedTable } from './shared-table.ts'

test('each key has a budget of its own that refills', () => {
  let now = 0
  const buckets = createKeyedBuckets({ perSecond: 2, burst: 3 }, () => now)
  for (let n = 0; n < 3; n++) assert.ok(buckets.take('a').ok)
  assert.deepEqual(buckets.take('a'), { ok: false, retryAfterMs: 500 })
  assert.ok(buckets.take('b').ok)
  now = 500
  assert.ok(buckets.take('a').ok)
  assert.equal(buckets.take('a').ok, false)
})

test('idle keys and keys beyond the maximum are dropped', () => {
  let now = 0
  const table = new SharedTable(createBucketMemory({ keysMax: 128 }), 0)
  const buckets = createKeyedBuckets({ perSecond: 1, burst: 1 }, () => now, table)
  for (let n = 0; n < 1000; n++) buckets.take(`key ${n}`)
  assert.equal(buckets.size, 128)
  now = 60_000
  for (let n = 0; n < 100; n++) buckets.take('one')
  assert.equal(buckets.size, 1)
})

test('a cost above one is taken whole or not at all, and work already done is charged into debt', () => {
  let now = 0
  const buckets = createKeyedBuckets({ perSecond: 10, burst: 20 }, () => now)
  assert.ok(buckets.take('a', 15).ok)
  assert.deepEqual(buckets.take('a', 6), { ok: false, retryAfterMs: 100 })
  assert.ok(buckets.take('a', 5).ok)
  assert.deepEqual(buckets.take('b', 21), { ok: false, retryAfterMs: Number.POSITIVE_INFINITY })
  buckets.charge('a', 10)
  assert.deepEqual(buckets.take('a'), { ok: false, retryAfterMs: 1100 })
  now = 1100
  assert.ok(buckets.take('a').ok)
})
