/**
 * The cluster's shred version of a chain without hard forks: the genesis hash folded to two bytes by XOR, big endian, plus one so that it
 * is never zero (Agave, compute_shred_version).
 */
export function shredVersionOf(genesisHash: Uint8Array): number {
  let high = 0
  let low = 0
  for (let i = 0; i < genesisHash.length; i += 2) {
    high ^= genesisHash[i] as number
    low ^= genesisHash[i + 1] as number
  }
  return Math.min(((high << 8) | low) + 1, 0xffff)
}
