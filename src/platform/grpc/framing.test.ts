import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import fc from 'fast-check'
import { seedFor } from '../../core/test-seed.ts'
import { createMessageReader, FrameBatch, frameMessage } from './framing.ts'

test('messages are whole in whatever chunks they come, though the memory of a chunk is used again when it is released', () => {
  const sizes = fc.array(fc.nat({ max: 300 }), { maxLength: 12 })
  const cuts = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 20 })
  const property = fc.property(sizes, cuts, fc.boolean(), (lengths, chunkSizes, isReleased) => {
    const sent = lengths.map((length, at) => new Uint8Array(length).fill(at + 1))
    const bytes = Buffer.concat(sent.map((message) => frameMessage(message)))
    const read: Uint8Array[] = []
    const reader = createMessageReader({ messageBytesMax: 300 }, (message) => read.push(new Uint8Array(message)))
    let released = 0
    let chunks = 0
    for (let from = 0; from < bytes.length; chunks++) {
      const size = chunkSizes[chunks % chunkSizes.length] as number
      const chunk = Buffer.from(bytes.subarray(from, from + size))
      from += size
      const release = () => {
        released += 1
        chunk.fill(0xff)
      }
      assert.equal(isReleased ? reader.push(chunk, release) : reader.push(chunk), undefined)
    }
    assert.deepEqual(read, sent)
    assert.equal(released, isReleased ? chunks : 0)
  })
  fc.assert(property, seedFor('messages in chunks'))
})

test('a chunk of malformed bytes is released too', () => {
  const reader = createMessageReader({ messageBytesMax: 300 }, () => assert.fail('no message'))
  let released = 0
  const problem = reader.push(Uint8Array.of(2, 0, 0, 0, 0), () => void (released += 1))
  assert.equal(problem?.message, 'unknown flag in the prefix of a message')
  assert.equal(released, 1)
})

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
