import { decodeBase58 } from '../../../solana/crypto/base58.ts'
import type { CuckooFilter } from '../../../solana/gen/geyser_pb.ts'
import { FilterError } from './limits.ts'
import { sipHash24 } from './siphash.ts'

/** The only parameters that clients use: four fingerprints of 16 bits per bucket, little endian. */
const ENTRIES_PER_BUCKET = 4
const FINGERPRINT_BITS = 16
/** Rust hashes `[u8; 32]` with its length, a usize, as prefix. */
const KEY_PREFIX_BYTES = 8

export type AddressSet = { has(address: string): boolean }

/**
 * A set of addresses given by fingerprints: false positives are possible (under 1 %), false negatives are not.
 * Hashes are SipHash-2-4 with the key (seed, seed rotated by 32); an empty entry is 0, so a fingerprint of 0 is stored as 1.
 */
export function createCuckooSet(filter: CuckooFilter, bytesMax: number): AddressSet {
  const { data, bucketCount, hashSeed } = filter
  if (data.length > bytesMax) throw new FilterError(`cuckoo filter larger than ${bytesMax} bytes`)
  if (
    filter.entriesPerBucket !== ENTRIES_PER_BUCKET ||
    filter.fingerprintBits !== FINGERPRINT_BITS ||
    filter.hashAlgorithm !== 0
  ) {
    throw new FilterError('cuckoo filter must have 4 entries of 16 bits in a bucket and use SipHash')
  }
  const isPowerOfTwo = bucketCount > 0 && (bucketCount & (bucketCount - 1)) === 0
  if (!isPowerOfTwo || data.length !== bucketCount * ENTRIES_PER_BUCKET * 2) {
    throw new FilterError('cuckoo filter data does not fit its bucket count')
  }
  const key1 = BigInt.asUintN(64, (hashSeed << 32n) | (hashSeed >> 32n))
  const mask = bucketCount - 1
  const keyed = new Uint8Array(KEY_PREFIX_BYTES + 32)
  keyed[0] = 32

  function bucketHas(bucket: number, fingerprint: number): boolean {
    const from = bucket * ENTRIES_PER_BUCKET * 2
    for (let at = from; at < from + ENTRIES_PER_BUCKET * 2; at += 2) {
      if (((data[at] as number) | ((data[at + 1] as number) << 8)) === fingerprint) return true
    }
    return false
  }

  return {
    has(address) {
      keyed.set(decodeBase58(address), KEY_PREFIX_BYTES)
      const hash = sipHash24(hashSeed, key1, keyed)
      const fingerprint = hash.high & 0xffff || 1
      const first = hash.low & mask
      if (bucketHas(first, fingerprint)) return true
      const other = sipHash24(hashSeed, key1, Uint8Array.of(fingerprint & 0xff, fingerprint >> 8))
      return bucketHas((first ^ (other.low & mask)) & mask, fingerprint)
    },
  }
}
