import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../test/support/process/property.ts'
import { createFirstInOrder } from './first-in-order.ts'

test('keeps what a stable sort has first', (t) => {
  const property = fc.property(fc.array(fc.nat(20)), fc.integer({ min: 1, max: 8 }), (keys, max) => {
    const all = keys.map((key, at) => ({ key, at }))
    const first = createFirstInOrder<{ key: number; at: number }>(max, (a, b) => a.key - b.key)
    for (const item of all) first.add(item)
    assert.deepEqual(first.items(), all.toSorted((a, b) => a.key - b.key).slice(0, max))
  })
  checkProperty(t, property, 500, 20_000)
})
