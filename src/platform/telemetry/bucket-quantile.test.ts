import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bucketQuantile } from './bucket-quantile.ts'
import { createMetricsRegistry } from './metrics-registry.ts'

test('a quantile lies within its bucket, in proportion to the values below it', () => {
  const bounds = [10, 20, 40]
  assert.equal(bucketQuantile(0.5, { bounds, counts: [0, 0, 0, 0] }), undefined)
  assert.equal(bucketQuantile(0.5, { bounds, counts: [4, 0, 0, 0] }), 5)
  assert.equal(bucketQuantile(0.5, { bounds, counts: [2, 2, 0, 0] }), 10)
  assert.equal(bucketQuantile(0.75, { bounds, counts: [2, 2, 0, 0] }), 15)
  assert.equal(bucketQuantile(0.99, { bounds, counts: [0, 0, 100, 0] }), 39.8)
  assert.equal(bucketQuantile(0.99, { bounds, counts: [50, 0, 0, 50] }), 40, 'above all bounds')
  assert.equal(bucketQuantile(1, { bounds, counts: [0, 5, 0, 0] }), 20)
})

test('the counts of a histogram are those of its buckets, without the sum', () => {
  using registry = createMetricsRegistry()
  const seconds = registry.histogram('sluice_test_seconds', 'x', { buckets: [1, 2] }).with({})
  assert.deepEqual(registry.buckets('sluice_test_seconds')?.counts ?? [0, 0, 0], [0, 0, 0])
  for (const value of [0.5, 1.5, 1.6, 9]) seconds.observe(value)
  assert.deepEqual(registry.buckets('sluice_test_seconds'), { bounds: [1, 2], counts: [1, 2, 1] })
  assert.equal(registry.buckets('sluice_unknown'), undefined)
})
