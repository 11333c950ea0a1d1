import { fromHex, type Hex, toHex } from './hex.ts'
import { keccak256 } from './keccak256.ts'

export const BLOOM_BYTES = 256

/** Addresses and topics whose bits are cached: most logs of a block repeat those of a few contracts. */
const CACHED_MAX = 4096

/**
 * Builds the 2048-bit bloom filter of receipts: three bits for each address and each topic of the logs. Source: Ethereum
 * yellow paper, 4.4.3.
 */
export class BloomBuilder {
  readonly #bits = new Map<Hex, readonly number[]>()
  #bloom = new Uint8Array(BLOOM_BYTES)

  add({ address, topics }: { readonly address: Hex; readonly topics: readonly Hex[] }): void {
    setBloomBits(this.#bloom, this.#bitsOf(address))
    for (const topic of topics) setBloomBits(this.#bloom, this.#bitsOf(topic))
  }

  /** The bloom of the logs added since the last call. */
  take(): Hex {
    const bloom = toHex(this.#bloom)
    this.#bloom = new Uint8Array(BLOOM_BYTES)
    return bloom
  }

  #bitsOf(value: Hex): readonly number[] {
    const known = this.#bits.get(value)
    if (known !== undefined) return known
    if (this.#bits.size >= CACHED_MAX) this.#bits.clear()
    const bits = bloomBits(fromHex(value))
    this.#bits.set(value, bits)
    return bits
  }
}

/** Whether the bloom may contain the value with these bits. */
export function mayContain(bloom: Uint8Array, bits: readonly number[]): boolean {
  return bits.every((bit) => ((bloom[BLOOM_BYTES - 1 - (bit >>> 3)] as number) & (1 << (bit & 7))) !== 0)
}

/** The three bits of one address or topic. */
export function bloomBits(value: Uint8Array): readonly number[] {
  const hash = keccak256(value)
  return [0, 2, 4].map((pair) => (((hash[pair] as number) << 8) | (hash[pair + 1] as number)) & 2047)
}

export function setBloomBits(bloom: Uint8Array, bits: readonly number[]): void {
  for (const bit of bits) {
    const byte = BLOOM_BYTES - 1 - (bit >>> 3)
    bloom[byte] = (bloom[byte] as number) | (1 << (bit & 7))
  }
}
