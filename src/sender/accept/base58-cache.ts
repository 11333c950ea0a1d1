import { setBounded } from '../../core/bounded-map.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'

/** Entries of the base58 cache; beyond it the oldest is removed. */
const BASE58_CACHE_MAX = 4096

/** Base58 of public keys and blockhashes, cached because the same few repeat and encoding costs more than a lookup. */
export function createBase58Cache(): (bytes: Uint8Array) => string {
  const texts = new Map<string, string>()
  return (bytes) => {
    const key = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
    const cached = texts.get(key)
    if (cached !== undefined) return cached
    const text = encodeBase58(bytes)
    setBounded(texts, key, text, BASE58_CACHE_MAX)
    return text
  }
}
