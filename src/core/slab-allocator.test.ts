import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keptMemory } from './slab-allocator.ts'

test('buffers made one after the other do not overlap, and memory held is little more than what was asked for', () => {
  const take = keptMemory()
  const kept = Array.from({ length: 5000 }, (_, n) => {
    // What others make meanwhile comes from elsewhere.
    Buffer.allocUnsafe(3000)
    return take(1 + (n % 400)).fill(n & 255)
  })
  for (const [n, bytes] of kept.entries()) {
    assert.equal(bytes.length, 1 + (n % 400))
    assert.ok(bytes.every((byte) => byte === (n & 255)))
  }
  const asked = kept.reduce((sum, { length }) => sum + length, 0)
  assert.ok(heldBytes(kept) < asked * 1.1, `${heldBytes(kept)} held for ${asked}`)
})

test('a large buffer has memory of its own', () => {
  const take = keptMemory()
  take(10)
  const large = take(100_000)
  assert.equal(large.buffer.byteLength, 100_000)
  assert.notEqual(take(10).buffer, large.buffer)
})

test('whoever keeps the newest holds one slab, whatever was made before', () => {
  const take = keptMemory()
  let newest = take(100)
  for (let n = 0; n < 10_000; n++) newest = take(100)
  assert.ok(heldBytes([newest]) <= 64 * 1024)
})

function heldBytes(buffers: readonly Buffer[]): number {
  const stores = new Set(buffers.map(({ buffer }) => buffer))
  return [...stores].reduce((sum, { byteLength }) => sum + byteLength, 0)
}
