import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { createFreshness } from './freshness.ts'

const hash = (n: number) => new Uint8Array(32).fill(n)

test('checks polled blockhashes from memory and looks up others once; refuses nothing when the node does not respond', async () => {
  const clock = createManualClock()
  const asked: string[] = []
  let latest = { blockhash: encodeBase58(hash(1)), lastValidBlockHeight: 250 }
  let isValid: boolean | undefined = true
  const ask = async (method: string) => {
    asked.push(method)
    if (method === 'getLatestBlockhash') return { value: latest }
    return isValid === undefined ? undefined : { value: isValid }
  }
  using freshness = createFreshness({ ask, clock })
  await clock.advanceAsync(1000)
  assert.deepEqual(asked, [], 'no call to the node without transactions')
  assert.deepEqual(
    await Promise.all([freshness.check(encodeBase58(hash(7))), freshness.check(encodeBase58(hash(7)))]),
    ['fresh', 'fresh'],
  )
  assert.deepEqual(asked, ['isBlockhashValid'])
  await clock.advanceAsync(400)
  latest = { blockhash: encodeBase58(hash(2)), lastValidBlockHeight: 399 }
  await clock.advanceAsync(400)
  asked.length = 0
  assert.equal(await freshness.check(encodeBase58(hash(1))), 'fresh', '149 blocks old')
  assert.deepEqual(asked, [])
  latest = { blockhash: encodeBase58(hash(3)), lastValidBlockHeight: 400 }
  await clock.advanceAsync(400)
  isValid = false
  assert.equal(await freshness.check(encodeBase58(hash(1))), 'expired', '150 blocks old, and the node agrees')
  assert.equal(await freshness.check(encodeBase58(hash(2))), 'fresh')
  isValid = undefined
  assert.equal(await freshness.check(encodeBase58(hash(9))), 'unknown')
})

test('renews a fresh blockhash in the background', async () => {
  const clock = createManualClock()
  let isValid = true
  let asked = 0
  const ask = async (method: string) => {
    if (method === 'getLatestBlockhash') return undefined
    asked += 1
    return { value: isValid }
  }
  using freshness = createFreshness({ ask, clock })
  const blockhash = encodeBase58(hash(7))
  assert.equal(await freshness.check(blockhash), 'fresh')
  await clock.advanceAsync(2900)
  assert.deepEqual([freshness.check(blockhash), asked], ['fresh', 1])
  await clock.advanceAsync(200)
  isValid = false
  assert.deepEqual([freshness.check(blockhash), asked], ['fresh', 2], 'known at once, and renewed')
  await clock.advanceAsync(1)
  assert.equal(freshness.check(blockhash), 'expired')
})

test('limits concurrent lookups of blockhashes; beyond the limit they are unknown', async () => {
  const clock = createManualClock()
  const { promise, resolve } = Promise.withResolvers<unknown>()
  let asked = 0
  const ask = () => {
    asked += 1
    return promise
  }
  using freshness = createFreshness({ ask, clock })
  const checks = Array.from({ length: 300 }, (_, n) => freshness.check(`invented ${n}`))
  assert.deepEqual([asked, checks.at(-1)], [256, 'unknown'])
  resolve({ value: false })
  assert.equal(await checks[0], 'expired')
})
