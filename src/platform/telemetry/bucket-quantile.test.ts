import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bucketQuantile } from './bucket-quantile.ts'

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
