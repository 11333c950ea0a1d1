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
