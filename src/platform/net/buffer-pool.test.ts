import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BufferPool } from './buffer-pool.ts'

describe('buffers that are used again', () => {
  it('lends what came back, and nothing to two at once', () => {
    const pool = new BufferPool({ keptBytesMax: 1_000_000 })
    const first = pool.lend(5000)
    const second = pool.lend(16_384)
    assert.ok(first.bytes.length >= 5000 && second.bytes.length >= 16_384)
    assert.notEqual(first.bytes, second.bytes)
    first.giveBack()
    first.giveBack()
    assert.equal(pool.lend(1).bytes, first.bytes)
    assert.notEqual(pool.lend(1).bytes, first.bytes)
    const large = pool.lend(16_385)
    assert.ok(large.bytes.length > 16_385)
    large.giveBack()
    assert.notEqual(pool.lend(1).bytes, large.bytes)
    assert.equal(pool.lend(10_000_000).bytes, large.bytes)
  })

  it('keeps no more than it may', () => {
    const pool = new BufferPool({ keptBytesMax: 40_000 })
    const acquired = [pool.lend(1), pool.lend(1), pool.lend(1), pool.lend(100_000)]
    for (const one of acquired) one.giveBack()
    const known = new Set(acquired.map(({ bytes }) => bytes))
    const again = [pool.lend(1), pool.lend(1), pool.lend(1), pool.lend(100_000)]
    assert.deepEqual(
      again.map(({ bytes }) => known.has(bytes)),
      [true, true, false, false],
    )
    again[0]?.giveBack()
    pool.clear()
    assert.notEqual(pool.lend(1).bytes, again[0]?.bytes)
  })
})
