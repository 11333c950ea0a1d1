import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { FrameBatch, frameMessage } from './framing.ts'

test('a batch has each message with its prefix; later batches do not change it', () => {
  const batch = new FrameBatch('identity')
  const taken: { frames: Uint8Array; expected: Buffer }[] = []
  for (const sizes of [[300], [10, 0, 5000], Array.from({ length: 40 }, () => 1500), [70_000, 1], [300], []]) {
    const expected = sizes.map((size, i) => {
      const head = [Buffer.alloc(i, 1), Buffer.of(2)]
      const body = Buffer.alloc(size, size & 255)
      batch.add(head, body)
      return frameMessage(Buffer.concat([...head, body]))
    })
    assert.equal(batch.isEmpty, sizes.length === 0)
    taken.push({ frames: batch.take(), expected: Buffer.concat(expected) })
    assert.ok(batch.isEmpty)
  }
  for (const { frames, expected } of taken) assert.ok(expected.equals(frames))
})

test('a batch of few bytes holds little more memory, however many of them wait for a slow client', () => {
  const waiting = Array.from({ length: 100 }, () => {
    const batch = new FrameBatch('identity')
    batch.add([], Buffer.alloc(500))
    return batch.take()
  })
  // Small batches share the memory of Node's pool.
  const held = new Set(waiting.map(({ buffer }) => buffer))
  const bytes = [...held].reduce((sum, buffer) => sum + buffer.byteLength, 0)
  assert.ok(bytes <= 2 * 100 * 505 + Buffer.poolSize, `${bytes} bytes are held`)
  assert.ok(!new FrameBatch('identity').isFull)
})
