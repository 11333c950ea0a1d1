/**
 * Keys of state accesses as 32-bit words, taken straight from a payload: an account is its address (5 words), a slot its address and
 * key (13 words). The words keep the byte order of the payload, so a byte view over them shows the key as it is written.
 */

export const ACCOUNT_KEY_WORDS = 5
export const STORAGE_KEY_WORDS = 13

/** ACCOUNT_ACCESS: the address stands at byte 4. */
export function loadAccountKey(words: Uint32Array, payloadAt: number, key: Uint32Array): void {
  const base = (payloadAt >>> 2) + 1
  for (let word = 0; word < ACCOUNT_KEY_WORDS; word++) key[word] = words[base + word] as number
}

/** STORAGE_ACCESS: the address stands at byte 0, the key at byte 27, across word boundaries. */
export function loadStorageKey(words: Uint32Array, payloadAt: number, key: Uint32Array): void {
  const base = payloadAt >>> 2
  for (let word = 0; word < ACCOUNT_KEY_WORDS; word++) key[word] = words[base + word] as number
  let left = words[base + 6] as number
  for (let word = 0; word < 8; word++) {
    const right = words[base + 7 + word] as number
    key[ACCOUNT_KEY_WORDS + word] = (left >>> 24) | (right << 8)
    left = right
  }
}

/** Flags of a STORAGE_ACCESS, bytes 25 and 26. */
export function isStorageModified(words: Uint32Array, payloadAt: number): boolean {
  return ((words[(payloadAt >>> 2) + 6] as number) & 0xff00) !== 0
}

export function isStorageTransient(words: Uint32Array, payloadAt: number): boolean {
  return ((words[(payloadAt >>> 2) + 6] as number) & 0xff0000) !== 0
}

/**
 * Hashes keys for `KeyTable`. The multipliers depend on the seed, so that whoever chooses addresses cannot choose collisions unless
 * the seed is known; results of the folds do not depend on it.
 */
export class KeyHasher {
  readonly #multipliers: Int32Array

  constructor(words: number, seed: number) {
    this.#multipliers = Int32Array.from({ length: words }, (_, word) => mix(seed + Math.imul(word + 1, 0x9e3779b9)) | 1)
  }

  hash(key: Uint32Array): number {
    const multipliers = this.#multipliers
    let sum = 0
    for (let word = 0; word < multipliers.length; word++) {
      const value = key[word] as number
      // Small numbers differ in the last byte of a key, which is the high byte of a word; a product alone would keep them there.
      sum = (sum + Math.imul(value ^ (value >>> 15), multipliers[word] as number)) | 0
    }
    return mix(sum)
  }
}

/** Finalizer of the `lowbias32` family: every bit of the input reaches every bit of the result. */
function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x7feb352d)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846ca68b)
  return mixed ^ (mixed >>> 16)
}
