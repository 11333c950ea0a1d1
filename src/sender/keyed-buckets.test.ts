import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKeyedBuckets } from './keyed-buckets.ts'

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

test('keys that are quiet or too many are forgotten', () => {
  let now = 0
  const buckets = createKeyedBuckets({ perSecond: 1, burst: 1 }, () => now, 100)
  for (let n = 0; n < 1000; n++) buckets.take(`key ${n}`)
  assert.equal(buckets.size, 100)
  now = 60_000
  for (let n = 0; n < 100; n++) buckets.take('one')
  assert.equal(buckets.size, 1)
})
