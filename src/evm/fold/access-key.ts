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

/**
 * Hashes keys for `KeyTable`. The multipliers depend on a secret seed, so that addresses cannot be chosen to collide. The results of the
 * folds do not depend on the seed.
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

  /** Reads and hashes the keys of a run of ACCOUNT_ACCESS. */
  takeAccounts(words: Uint32Array, run: AccessRun): void {
    const { count, payloadAt, keys, hashes } = run
    for (let at = 0; at < count; at++) {
      hashes[at] = mix(
        this.#takeAddress(words, ((payloadAt[at] as number) >>> 2) + ACCOUNT_ADDRESS, keys, at * ACCOUNT_KEY_WORDS),
      )
    }
  }

  /**
   * Reads and hashes the keys of a run of STORAGE_ACCESS; the slot key lies across word boundaries. Unrolled, because it takes half the
   * time of a loop over the words.
   */
  takeSlots(words: Uint32Array, { count, payloadAt, keys, hashes, contractHashes, flags }: AccessRun): void {
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
        spread(address0, m0) + spread(address1, m1) + spread(address2, m2) + spread(address3, m3) + spread(address4, m4)
      const ofSlot =
        spread(slot0, m5) +
        spread(slot1, m6) +
        spread(slot2, m7) +
        spread(slot3, m8) +
        spread(slot4, m9) +
        spread(slot5, m10) +
        spread(slot6, m11) +
        spread(slot7, m12)
      contractHashes[at] = mix(ofAddress | 0)
      hashes[at] = mix((ofAddress + ofSlot) | 0)
    }
  }

  #takeAddress(words: Uint32Array, from: number, keys: Uint32Array, to: number): number {
    const multipliers = this.#multipliers
    let sum = 0
    for (let word = 0; word < ACCOUNT_KEY_WORDS; word++) {
      const value = words[from + word] as number
      keys[to + word] = value
      sum = (sum + spread(value, multipliers[word] as number)) | 0
    }
    return sum
  }
}

/** The word that begins with the last byte of `left` and continues in `right`. */
function straddle(left: number, right: number): number {
  return (left >>> 24) | (right << 8)
}

/** Small numbers differ in the last byte of a key, the high byte of a word; a product alone would keep the difference there. */
function spread(value: number, multiplier: number): number {
  return Math.imul(value ^ (value >>> 15), multiplier)
}

/** Finalizer of the `lowbias32` family: every bit of the input reaches every bit of the result. */
function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x7feb352d)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846ca68b)
  return mixed ^ (mixed >>> 16)
}
