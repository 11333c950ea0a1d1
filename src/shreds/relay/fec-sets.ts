import { copyBytes } from '../../core/copy-bytes.ts'
import type { Sha256 } from '../../core/sha256.ts'
import { FecSetTrees, type LeafHasher } from '../../solana/shred/fec-set-proofs.ts'
import { SIGNATURE_BYTES } from '../../solana/shred/shred.ts'

/** FEC sets that are held: about thirty slots of full blocks, at most 12 MB. The oldest are replaced. */
export const FEC_SETS_MAX = 4096

/** `pending`: the signature over its root is being checked. */
export const SET_STATE = { none: 0, pending: 1, signed: 2 } as const

/**
 * The FEC sets whose signature is checked or being checked, found by slot, index in the slot and signature. A pending set is one claimed root: several
 * can have the same signature until it is known which of them the leader signed. All memory is allocated once.
 */
export class FecSets {
  readonly states = new Uint8Array(FEC_SETS_MAX)
  readonly slots = new Float64Array(FEC_SETS_MAX)
  readonly signatures = new Uint8Array(FEC_SETS_MAX * SIGNATURE_BYTES)
  readonly trees: FecSetTrees
  readonly #indexes = new Int32Array(FEC_SETS_MAX)
  /** The first set of each chain, and the set after each. */
  readonly #heads = new Int32Array(FEC_SETS_MAX).fill(-1)
  readonly #nexts = new Int32Array(FEC_SETS_MAX).fill(-1)
  #oldest = 0

  constructor(sha256: Sha256, leaves: LeafHasher) {
    this.trees = new FecSetTrees(FEC_SETS_MAX, sha256, leaves)
  }

  /** The newest set with this identity in one of the states; -1 without one. */
  find(slot: number, index: number, bytes: Uint8Array, at: number, state: number): number {
    return this.#search(this.#heads[chainOf(slot, index)] as number, slot, index, bytes, at, state)
  }

  /** The next older one with the identity of this set. */
  findOlder(set: number, bytes: Uint8Array, at: number, state: number): number {
    const slot = this.slots[set] as number
    return this.#search(this.#nexts[set] as number, slot, this.#indexes[set] as number, bytes, at, state)
  }

  /** Replaces the oldest set that is not pending. */
  add(slot: number, index: number, bytes: Uint8Array, at: number): number {
    while (this.states[this.#oldest] === SET_STATE.pending) this.#oldest = (this.#oldest + 1) % FEC_SETS_MAX
    const set = this.#oldest
    this.#oldest = (set + 1) % FEC_SETS_MAX
    this.remove(set)
    this.states[set] = SET_STATE.pending
    this.slots[set] = slot
    this.#indexes[set] = index
    copyBytes(bytes, at, at + SIGNATURE_BYTES, this.signatures, set * SIGNATURE_BYTES)
    const chain = chainOf(slot, index)
    this.#nexts[set] = this.#heads[chain] as number
    this.#heads[chain] = set
    return set
  }

  remove(set: number): void {
    if (this.states[set] === SET_STATE.none) return
    this.states[set] = SET_STATE.none
    const chain = chainOf(this.slots[set] as number, this.#indexes[set] as number)
    const next = this.#nexts[set] as number
    if (this.#heads[chain] === set) {
      this.#heads[chain] = next
      return
    }
    let before = this.#heads[chain] as number
    while (this.#nexts[before] !== set) before = this.#nexts[before] as number
    this.#nexts[before] = next
  }

  #search(from: number, slot: number, index: number, bytes: Uint8Array, at: number, state: number): number {
    let set = from
    for (; set >= 0; set = this.#nexts[set] as number) {
      if (this.states[set] !== state || this.slots[set] !== slot || this.#indexes[set] !== index) continue
      if (this.#hasSignature(set, bytes, at)) return set
    }
    return -1
  }

  #hasSignature(set: number, bytes: Uint8Array, at: number): boolean {
    const from = set * SIGNATURE_BYTES
    for (let i = 0; i < SIGNATURE_BYTES; i++) if (this.signatures[from + i] !== bytes[at + i]) return false
    return true
  }
}

/** The sets of a slot have chains of their own; slots this far apart share them. */
function chainOf(slot: number, index: number): number {
  return ((slot % FEC_SETS_MAX) * 251 + index) % FEC_SETS_MAX
}
