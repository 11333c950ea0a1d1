import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSlabAllocator } from './slab-allocator.ts'

test('consecutive buffers do not overlap, and the memory in use is little more than requested', () => {
  const take = createSlabAllocator()
  const kept = Array.from({ length: 5000 }, (_, n) => {
    // Buffers that other code allocates meanwhile come from Node's pool.
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

test('a large buffer gets its own memory', () => {
  const take = createSlabAllocator()
  take(10)
  const large = take(100_000)
  assert.equal(large.buffer.byteLength, 100_000)
  assert.notEqual(take(10).buffer, large.buffer)
})

test('keeping only the newest buffer retains one slab', () => {
  const take = createSlabAllocator()
  let newest = take(100)
  for (let n = 0; n < 10_000; n++) newest = take(100)
  assert.ok(heldBytes([newest]) <= 64 * 1024)
})

function heldBytes(buffers: readonly Buffer[]): number {
  const stores = new Set(buffers.map(({ buffer }) => buffer))
  return [...stores].reduce((sum, { byteLength }) => sum + byteLength, 0)
}
