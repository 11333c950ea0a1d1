import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BufferPool } from './buffer-pool.ts'

describe('buffer pool', () => {
  it('reuses a released buffer, and never for two users at once', () => {
    const pool = new BufferPool({ pooledBytesMax: 1_000_000 })
    const first = pool.acquire(5000)
    const second = pool.acquire(16_384)
    assert.ok(first.bytes.length >= 5000 && second.bytes.length >= 16_384)
    assert.notEqual(first.bytes, second.bytes)
    first.release()
    first.release()
    assert.equal(pool.acquire(1).bytes, first.bytes)
    assert.notEqual(pool.acquire(1).bytes, first.bytes)
    const large = pool.acquire(16_385)
    assert.ok(large.bytes.length > 16_385)
    large.release()
    assert.notEqual(pool.acquire(1).bytes, large.bytes)
    assert.equal(pool.acquire(10_000_000).bytes, large.bytes)
  })

  it('holds at most pooledBytesMax', () => {
    const pool = new BufferPool({ pooledBytesMax: 40_000 })
    const acquired = [pool.acquire(1), pool.acquire(1), pool.acquire(1), pool.acquire(100_000)]
    for (const one of acquired) one.release()
    const known = new Set(acquired.map(({ bytes }) => bytes))
    const again = [pool.acquire(1), pool.acquire(1), pool.acquire(1), pool.acquire(100_000)]
    assert.deepEqual(
      again.map(({ bytes }) => known.has(bytes)),
      [true, true, false, false],
    )
    again[0]?.release()
    pool.clear()
    assert.notEqual(pool.acquire(1).bytes, again[0]?.bytes)
  })
})
