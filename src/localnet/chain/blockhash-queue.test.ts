import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { BLOCKHASH_AGE_MAX, createBlockhashQueue, isValidAge, SIMULATION_AGE_MAX } from './blockhash-queue.ts'

const hash = (n: number) =>
  encodeBase58(
    new Uint8Array(32)
      .fill(1)
      .with(0, n >> 8)
      .with(1, n & 0xff),
  )

test('keeps the hashes of 300 blocks before the newest, also as seen from an older block', () => {
  const queue = createBlockhashQueue()
  for (let height = 0; height <= 500; height++) queue.push(hash(height), height)
  for (const head of [500, 350]) {
    assert.deepEqual(
      [head - 301, head - 300, head, head + 1].map((height) => queue.ageAt(hash(height), head)),
      [undefined, 300, 0, undefined],
    )
  }
  assert.deepEqual(queue.upTo(500, 2).map(encodeBase58), [hash(500), hash(499)])
  assert.deepEqual(queue.upTo(490, 1).map(encodeBase58), [hash(490)])
})

test('forgets the oldest hashes', () => {
  const queue = createBlockhashQueue()
  for (let height = 0; height <= 700; height++) queue.push(hash(height), height)
  assert.deepEqual(
    [144, 145].map((height) => queue.ageAt(hash(height), height)),
    [undefined, 0],
  )
})

test('a hash is valid for 150 blocks after its own, in a simulation for 144', () => {
  assert.deepEqual(
    [undefined, 0, 150, 151].map((age) => isValidAge(age, BLOCKHASH_AGE_MAX)),
    [false, true, true, false],
  )
  assert.deepEqual(
    [144, 145].map((age) => isValidAge(age, SIMULATION_AGE_MAX)),
    [true, false],
  )
})
