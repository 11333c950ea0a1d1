import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { encodeBase58 } from '../../../solana/crypto/base58.ts'
import { CuckooFilterSchema } from '../../../solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../../solana/geyser/protobuf.ts'
import { createCuckooSet } from './cuckoo.ts'
import { sipHash24 } from './siphash.ts'

const { CompressedAccountFilterSet } = createRequire(import.meta.url)('helius-laserstream')

test('SipHash-2-4 matches the published test vectors', () => {
  const key0 = 0x0706050403020100n
  const key1 = 0x0f0e0d0c0b0a0908n
  const vectors: readonly [length: number, hash: bigint][] = [
    [0, 0x726fdb47dd0e0e31n],
    [1, 0x74f839c593dc67fdn],
    [7, 0xab0200f58b01d137n],
    [8, 0x93f5f5799a932462n],
    [15, 0xa129ca6149be45e5n],
    [63, 0x958a324ceb064572n],
  ]
  for (const [length, expected] of vectors) {
    const { low, high } = sipHash24(
      key0,
      key1,
      Uint8Array.from({ length }, (_, index) => index),
    )
    assert.equal((BigInt(high) << 32n) | BigInt(low), expected, `length ${length}`)
  }
})

test('contains every inserted address and few others', () => {
  const inside = Array.from({ length: 2000 }, (_, index) => address('in', index))
  const built = new CompressedAccountFilterSet(2000)
  for (const key of inside) built.insert(key)
  const set = createCuckooSet(toFilter(built.toProto()), 1_000_000)
  assert.ok(inside.every((key) => set.has(key)))
  const strangers = Array.from({ length: 5000 }, (_, index) => address('out', index)).filter((key) => set.has(key))
  assert.ok(strangers.length < 50, `${strangers.length} false positives`)
})

test('refuses a filter with other parameters or above the size limit', () => {
  const proto = new CompressedAccountFilterSet(10).toProto()
  assert.throws(() => createCuckooSet(toFilter(proto), 10), /larger than 10 bytes/)
  assert.throws(() => createCuckooSet(toFilter({ ...proto, fingerprintBits: 12 }), 1000), /16 bits/)
  assert.throws(() => createCuckooSet(toFilter({ ...proto, bucketCount: 3 }), 1000), /bucket count/)
  assert.throws(() => createCuckooSet(toFilter({ ...proto, bucketCount: 0, data: '' }), 1000), /bucket count/)
})

type CuckooJson = {
  data: string
  bucketCount: number
  entriesPerBucket: number
  fingerprintBits: number
  hashSeed: string
}

function toFilter({ data, bucketCount, entriesPerBucket, fingerprintBits, hashSeed }: CuckooJson) {
  const bytes = encodeMessage(CuckooFilterSchema, {
    data: Buffer.from(data, 'base64'),
    bucketCount,
    entriesPerBucket,
    fingerprintBits,
    hashSeed: BigInt(hashSeed),
  })
  const filter = decodeMessage(CuckooFilterSchema, bytes)
  assert.ok(filter)
  return filter
}

function address(kind: string, index: number): string {
  return encodeBase58(createHash('sha256').update(`${kind}${index}`).digest())
}
