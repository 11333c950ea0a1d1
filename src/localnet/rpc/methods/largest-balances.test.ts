import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { encodeBase58 } from '../../../solana/crypto/base58.ts'
import { takeLargest } from './largest-balances.ts'

const balance = (fill: number, amount: bigint) => ({ address: encodeBase58(Buffer.alloc(32, fill)), amount })

test('takes the 20 largest; equal amounts in descending order of the address bytes', () => {
  // Leading zero bytes make the text of an address shorter: the order of the texts is another one.
  const equal = Array.from({ length: 30 }, (_, fill) => balance(fill, 5n))
  const [least, most] = [balance(40, 4n), balance(0, 6n)]
  const expected = [most, ...equal.slice(-19).reverse()]
  assert.deepEqual(takeLargest([least, ...equal, most]), expected)
  assert.deepEqual(takeLargest([most, ...equal.toReversed(), least]), expected)
  assert.deepEqual(takeLargest([]), [])
})

test('a key with a leading zero byte is smaller, although its text is longer', () => {
  const [small, great] = [
    [0, 255],
    [1, 0],
  ].map(([first = 0, rest]) => ({
    address: encodeBase58(Buffer.concat([Buffer.of(first), Buffer.alloc(31, rest)])),
    amount: 5n,
  }))
  assert.ok(small && great && small.address.length > great.address.length)
  for (const given of [
    [small, great],
    [great, small],
  ])
    assert.deepEqual(takeLargest(given), [great, small])
})
