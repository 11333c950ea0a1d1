import { encodeBase58 } from '../../solana/crypto/base58.ts'

/** Texts kept; beyond it the one that was made first is made anew when it is wanted again. */
const KEPT_MAX = 4096

/** Base58 of public keys and blockhashes. The same few come again and again, and making one costs more than finding it. */
export function createAddressTexts(): (bytes: Uint8Array) => string {
  const known = new Map<string, string>()
  return (bytes) => {
    const key = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
    const kept = known.get(key)
    if (kept !== undefined) return kept
    const text = encodeBase58(bytes)
    known.set(key, text)
    if (known.size > KEPT_MAX) known.delete(known.keys().next().value as string)
    return text
  }
}
