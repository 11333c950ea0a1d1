import { fromHex, type Hex, toHex } from './hex.ts'
import { keccak256 } from './keccak256.ts'

const BLOOM_BYTES = 256

/** The 2048-bit filter of a receipt: three bits for each address and each topic of its logs. Source: Ethereum yellow paper, 4.4.3. */
export function logsBloom(logs: readonly { address: Hex; topics: readonly Hex[] }[]): Hex {
  const bloom = new Uint8Array(BLOOM_BYTES)
  for (const { address, topics } of logs) for (const value of [address, ...topics]) addTo(bloom, fromHex(value))
  return toHex(bloom)
}

function addTo(bloom: Uint8Array, value: Uint8Array): void {
  const hash = keccak256(value)
  for (const pair of [0, 2, 4]) {
    const bit = (((hash[pair] as number) << 8) | (hash[pair + 1] as number)) & 2047
    const place = BLOOM_BYTES - 1 - (bit >>> 3)
    bloom[place] = (bloom[place] as number) | (1 << (bit & 7))
  }
}
