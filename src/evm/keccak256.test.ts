import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { createdAddress } from './eth-json.ts'
import { fromHex, toHex } from './hex.ts'
import { keccak256 } from './keccak256.ts'
import { bloomOf } from './test-eth-block.ts'

const text = (message: string): string => toHex(keccak256(Buffer.from(message)))

test('known test vectors', () => {
  assert.equal(text(''), '0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470')
  assert.equal(text('abc'), '0x4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45')
  assert.equal(
    text('Transfer(address,address,uint256)'),
    '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
  )
})

test('every length around the rate gives a distinct hash, none equal to SHA3-256', () => {
  const hashes = new Set<string>()
  for (let length = 130; length <= 280; length++) {
    const message = new Uint8Array(length)
    const hash = toHex(keccak256(message))
    assert.notEqual(hash, `0x${createHash('sha3-256').update(message).digest('hex')}`)
    hashes.add(hash)
  }
  assert.equal(hashes.size, 151)
})

test('addresses of created contracts', () => {
  // Published examples for this sender, then edge cases of the nonce encoding.
  const sender = '0x6ac7ea33f8831ea9dcc53393aaa88b25a785dbf0'
  assert.equal(createdAddress(sender, 0n), '0xcd234a471b72ba2f1ccf0a70fcaba648a5eecd8d')
  assert.equal(createdAddress(sender, 1n), '0x343c43a37d37dff08ae8c4a11544c718abb4fcf8')
  const addresses = [127n, 128n, 255n, 256n, 2n ** 64n - 2n].map((nonce) => createdAddress(sender, nonce))
  assert.equal(new Set(addresses).size, 5)
  const rlp = fromHex('d8946ac7ea33f8831ea9dcc53393aaa88b25a785dbf0820100')
  assert.equal(addresses[3], toHex(keccak256(rlp), 12))
})

test('a bloom has at most three bits for each address and topic', () => {
  assert.equal(bloomOf([]), `0x${'0'.repeat(512)}`)
  const bloom = fromHex(bloomOf([{ address: `0x${'11'.repeat(20)}`, topics: [`0x${'22'.repeat(32)}`] }]))
  const bits = bloom.reduce((sum, byte) => sum + byte.toString(2).replaceAll('0', '').length, 0)
  assert(bits >= 2 && bits <= 6)
})
