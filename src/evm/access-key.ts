/**
 * Keys of state accesses as 32-bit words, taken straight from a payload: an account is its address (5 words), a slot its address and
 * key (13 words). The words keep the byte order of the payload, so a byte view over them shows the key as it is written.
 */

export const ACCOUNT_KEY_WORDS = 5
export const STORAGE_KEY_WORDS = 13

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

  hash(keys: Uint32Array, at: number): number {
    const multipliers = this.#multipliers
    let sum = 0
    for (let word = 0; word < multipliers.length; word++) {
      sum = (sum + spread(keys[at + word] as number, multipliers[word] as number)) | 0
    }
    return mix(sum)
  }

  /** ACCOUNT_ACCESS: the address stands at byte 4. Copies the key and returns its hash. */
  takeAccount(words: Uint32Array, payloadAt: number, keys: Uint32Array, at: number): number {
    return mix(this.#take(words, (payloadAt >>> 2) + 1, keys, at))
  }

  /** STORAGE_ACCESS: the address stands at byte 0, the key at byte 27, across word boundaries. */
  takeStorage(words: Uint32Array, payloadAt: number, keys: Uint32Array, at: number): number {
    const multipliers = this.#multipliers
    const from = payloadAt >>> 2
    let sum = this.#take(words, from, keys, at)
    let left = words[from + 6] as number
    for (let word = ACCOUNT_KEY_WORDS; word < STORAGE_KEY_WORDS; word++) {
      const right = words[from + 2 + word] as number
      const value = (left >>> 24) | (right << 8)
      keys[at + word] = value
      sum = (sum + spread(value, multipliers[word] as number)) | 0
      left = right
    }
    return mix(sum)
  }

  #take(words: Uint32Array, from: number, keys: Uint32Array, at: number): number {
    const multipliers = this.#multipliers
    let sum = 0
    for (let word = 0; word < ACCOUNT_KEY_WORDS; word++) {
      const value = words[from + word] as number
      keys[at + word] = value
      sum = (sum + spread(value, multipliers[word] as number)) | 0
    }
    return sum
  }
}

/** Small numbers differ in the last byte of a key, which is the high byte of a word; a product alone would keep them there. */
function spread(value: number, multiplier: number): number {
  return Math.imul(value ^ (value >>> 15), multiplier)
}

/** Finalizer of the `lowbias32` family: every bit of the input reaches every bit of the result. */
function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x7feb352d)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846ca68b)
  return mixed ^ (mixed >>> 16)
}
