import { fromHex, type Hex, toHex } from './hex.ts'
import { keccak256 } from './keccak256.ts'

export const BLOOM_BYTES = 256

/** The 2048-bit filter of a receipt: three bits for each address and each topic of its logs. Source: Ethereum yellow paper, 4.4.3. */
export function logsBloom(logs: readonly { address: Hex; topics: readonly Hex[] }[]): Hex {
  const bloom = new Uint8Array(BLOOM_BYTES)
  for (const { address, topics } of logs)
    for (const value of [address, ...topics]) setBloomBits(bloom, bloomBits(fromHex(value)))
  return toHex(bloom)
}

/** The three bits of one address or topic. */
export function bloomBits(value: Uint8Array): readonly number[] {
  const hash = keccak256(value)
  return [0, 2, 4].map((pair) => (((hash[pair] as number) << 8) | (hash[pair + 1] as number)) & 2047)
}

export function setBloomBits(bloom: Uint8Array, bits: readonly number[]): void {
  for (const bit of bits) {
    const place = BLOOM_BYTES - 1 - (bit >>> 3)
    bloom[place] = (bloom[place] as number) | (1 << (bit & 7))
  }
}
