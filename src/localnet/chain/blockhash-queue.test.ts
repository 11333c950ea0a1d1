import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { createBlockhashQueue, isRecent } from './blockhash-queue.ts'

const hash = (n: number) =>
  encodeBase58(
    new Uint8Array(32)
      .fill(1)
      .with(0, n >> 8)
      .with(1, n & 0xff),
  )

test('keeps 300 hashes, newest first', () => {
  const queue = createBlockhashQueue()
  for (let height = 0; height <= 300; height++) queue.push(hash(height), height)
  assert.equal(queue.heightOf(hash(0)), undefined)
  assert.equal(queue.heightOf(hash(1)), 1)
  assert.deepEqual(queue.upTo(300, 2).map(encodeBase58), [hash(300), hash(299)])
  assert.deepEqual(queue.upTo(290, 1).map(encodeBase58), [hash(290)])
})

test('a hash is valid for 150 blocks after its own, and not before it', () => {
  assert.deepEqual(
    [9, 10, 160, 161].map((head) => isRecent(10, head)),
    [false, true, true, false],
  )
})
