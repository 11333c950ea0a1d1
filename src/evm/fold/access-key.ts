import { PAYLOADS } from '../event/payloads.ts'
import type { AccessRun } from './access-run.ts'

/**
 * Keys of state accesses as 32-bit words, read directly from a payload: an account is its address (5 words), a slot its address and
 * key (13 words). The words keep the byte order of the payload, so a byte view over them shows the key as it is recorded.
 */

export const ACCOUNT_KEY_WORDS = 5
export const STORAGE_KEY_WORDS = 13

/** Words of the payloads. `key` of a STORAGE_ACCESS begins with the last byte of a word, after the two flags. */
const ACCOUNT_ADDRESS = PAYLOADS.ACCOUNT_ACCESS.fields.address[1] >>> 2
const STORAGE_ADDRESS = PAYLOADS.STORAGE_ACCESS.fields.address[1] >>> 2
const STORAGE_KEY = PAYLOADS.STORAGE_ACCESS.fields.key[1] >>> 2

/** Flags of a STORAGE_ACCESS: the bytes `modified` and `transient`. */
export function isModified(flags: number): boolean {
  return (flags & 0xff) !== 0
}

/** Transient storage exists within one transaction and cannot conflict. */
export function isTransient(flags: number): boolean {
  return (flags & 0xff00) !== 0
}

/** Multipliers are 1 … 2^18: 13 products with signed 32-bit words then add up to less than 2^53, which a Number holds exactly. */
const MULTIPLIER_BITS = 18

/**
 * Hashes keys for `KeyTable`. Contracts choose their addresses and storage keys, so the hash has to spread chosen keys too: it sums the
 * words times secret multipliers, without overflow. Two keys that differ in a word have equal sums for at most one of its 2^18
 * multipliers, whatever the other words are. (A sum modulo 2^32 is no such hash: it loses the high bits of every product.) The results of
 * the folds do not depend on the seed.
 */
export class KeyHasher {
  readonly #multipliers: Float64Array
  /** Odd. Multiplies the high bits of a sum, see `reduce`. */
  readonly #highMultiplier: number

  constructor(words: number, seed: number) {
    const secret = (index: number) => mix(seed + Math.imul(index, 0x9e3779b9))
    this.#highMultiplier = secret(0) | 1
    this.#multipliers = Float64Array.from(
      { length: words },
      (_, word) => (secret(word + 1) >>> (32 - MULTIPLIER_BITS)) + 1,
    )
  }

  hash(keys: Uint32Array, at: number): number {
    const multipliers = this.#multipliers
    let sum = 0
    for (let word = 0; word < multipliers.length; word++) {
      sum += multiply(keys[at + word] as number, multipliers[word] as number)
    }
    return reduce(sum, this.#highMultiplier)
  }

  /** Reads and hashes the keys of a run of ACCOUNT_ACCESS. Unrolled, like `hashSlots`. */
  hashAccounts(words: Uint32Array, { count, payloadAt, keys, hashes }: AccessRun): void {
    const high = this.#highMultiplier
    const multipliers = this.#multipliers
    const m0 = multipliers[0] as number
    const m1 = multipliers[1] as number
    const m2 = multipliers[2] as number
    const m3 = multipliers[3] as number
    const m4 = multipliers[4] as number
    for (let at = 0; at < count; at++) {
      const from = ((payloadAt[at] as number) >>> 2) + ACCOUNT_ADDRESS
      const address0 = words[from] as number
      const address1 = words[from + 1] as number
      const address2 = words[from + 2] as number
      const address3 = words[from + 3] as number
      const address4 = words[from + 4] as number

      const to = at * ACCOUNT_KEY_WORDS
      keys[to + 0] = address0
      keys[to + 1] = address1
      keys[to + 2] = address2
      keys[to + 3] = address3
      keys[to + 4] = address4

      const ofAddress =
        multiply(address0, m0) +
        multiply(address1, m1) +
        multiply(address2, m2) +
        multiply(address3, m3) +
        multiply(address4, m4)
      hashes[at] = reduce(ofAddress, high)
    }
  }

  /**
   * Reads and hashes the keys of a run of STORAGE_ACCESS; the slot key lies across word boundaries. Unrolled, because it takes half the
   * time of a loop over the words.
   */
  hashSlots(words: Uint32Array, { count, payloadAt, keys, hashes, contractHashes, flags }: AccessRun): void {
    const high = this.#highMultiplier
    const multipliers = this.#multipliers
    const m0 = multipliers[0] as number
    const m1 = multipliers[1] as number
    const m2 = multipliers[2] as number
    const m3 = multipliers[3] as number
    const m4 = multipliers[4] as number
    const m5 = multipliers[5] as number
    const m6 = multipliers[6] as number
    const m7 = multipliers[7] as number
    const m8 = multipliers[8] as number
    const m9 = multipliers[9] as number
    const m10 = multipliers[10] as number
    const m11 = multipliers[11] as number
    const m12 = multipliers[12] as number
    for (let at = 0; at < count; at++) {
      const from = (payloadAt[at] as number) >>> 2
      const address0 = words[from + STORAGE_ADDRESS] as number
      const address1 = words[from + STORAGE_ADDRESS + 1] as number
      const address2 = words[from + STORAGE_ADDRESS + 2] as number
      const address3 = words[from + STORAGE_ADDRESS + 3] as number
      const address4 = words[from + STORAGE_ADDRESS + 4] as number
      const before = words[from + STORAGE_KEY] as number
      const word0 = words[from + STORAGE_KEY + 1] as number
      const word1 = words[from + STORAGE_KEY + 2] as number
      const word2 = words[from + STORAGE_KEY + 3] as number
      const word3 = words[from + STORAGE_KEY + 4] as number
      const word4 = words[from + STORAGE_KEY + 5] as number
      const word5 = words[from + STORAGE_KEY + 6] as number
      const word6 = words[from + STORAGE_KEY + 7] as number
      const word7 = words[from + STORAGE_KEY + 8] as number
      const slot0 = straddle(before, word0)
      const slot1 = straddle(word0, word1)
      const slot2 = straddle(word1, word2)
      const slot3 = straddle(word2, word3)
      const slot4 = straddle(word3, word4)
      const slot5 = straddle(word4, word5)
      const slot6 = straddle(word5, word6)
      const slot7 = straddle(word6, word7)
      flags[at] = before >>> 8

      const to = at * STORAGE_KEY_WORDS
      keys[to + 0] = address0
      keys[to + 1] = address1
      keys[to + 2] = address2
      keys[to + 3] = address3
      keys[to + 4] = address4
      keys[to + 5] = slot0
      keys[to + 6] = slot1
      keys[to + 7] = slot2
      keys[to + 8] = slot3
      keys[to + 9] = slot4
      keys[to + 10] = slot5
      keys[to + 11] = slot6
      keys[to + 12] = slot7

      const ofAddress =
        multiply(address0, m0) +
        multiply(address1, m1) +
        multiply(address2, m2) +
        multiply(address3, m3) +
        multiply(address4, m4)
      const ofSlot =
        multiply(slot0, m5) +
        multiply(slot1, m6) +
        multiply(slot2, m7) +
        multiply(slot3, m8) +
        multiply(slot4, m9) +
        multiply(slot5, m10) +
        multiply(slot6, m11) +
        multiply(slot7, m12)
      contractHashes[at] = reduce(ofAddress, high)
      hashes[at] = reduce(ofAddress + ofSlot, high)
    }
  }
}

/** The word that begins with the last byte of `left` and continues in `right`. */
function straddle(left: number, right: number): number {
  return (left >>> 24) | (right << 8)
}

/** Exact. The word counts as signed, which is the cheaper conversion. */
function multiply(word: number, multiplier: number): number {
  return (word | 0) * multiplier
}

/**
 * 32 bits of a sum. Both parts of it, the low 32 bits and those from bit 21 on, are needed: differences in the high bits of words change
 * only the second.
 */
function reduce(sum: number, highMultiplier: number): number {
  return mix((Math.imul((sum * 2 ** -21) | 0, highMultiplier) + (sum | 0)) | 0)
}

/** Finalizer of the `lowbias32` family: every bit of the input reaches every bit of the result. */
function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x7feb352d)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846ca68b)
  return mixed ^ (mixed >>> 16)
}
