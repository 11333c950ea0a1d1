import { type Random, randomInt } from '../../core/random.ts'
import type { Commitment } from '../chain/model.ts'
import type { Consensus, LocalnetOptions } from '../options.ts'

/** A block that reached a level. */
export type CommitmentStep = { readonly kind: 'confirmed' | 'finalized'; readonly slot: number }

/**
 * How far the chain is confirmed and finalized. On the tower both follow the newest block at a distance. Under Alpenglow they reach a block in its own slot or
 * in the next one, often both at once. No level goes back when the consensus changes.
 */
export class Commitments {
  readonly #distances: LocalnetOptions['commitment']
  readonly #random: Random
  /** Negative before the first block reached the level. */
  #confirmed: number
  #finalized: number

  /** `finalizedSlot`: known to be finalized, although it may be nearer to the head than the distance. */
  constructor(
    distances: LocalnetOptions['commitment'],
    start: { readonly headSlot: number; readonly finalizedSlot: number; readonly random: Random },
  ) {
    this.#distances = distances
    this.#random = start.random
    this.#confirmed = Math.max(start.headSlot - distances.confirmedSlots, start.finalizedSlot)
    this.#finalized = Math.max(start.headSlot - distances.finalizedSlots, start.finalizedSlot)
  }

  slot(commitment: Exclude<Commitment, 'processed'>): number {
    return Math.max(0, commitment === 'confirmed' ? this.#confirmed : this.#finalized)
  }

  /** The blocks that reach a level with the newest block, in the order in which this is announced. */
  advance(headSlot: number, consensus: Consensus): CommitmentStep[] {
    return consensus === 'tower' ? this.#advanceTower(headSlot) : this.#advanceAlpenglow(headSlot)
  }

  #advanceTower(headSlot: number): CommitmentStep[] {
    const { confirmedSlots, finalizedSlots } = this.#distances
    const steps: CommitmentStep[] = []
    this.#confirm(headSlot - confirmedSlots, steps)
    this.#finalize(headSlot - finalizedSlots, steps)
    return steps
  }

  /** Block by block: each is finalized directly after it is confirmed, where both happen now. */
  #advanceAlpenglow(headSlot: number): CommitmentStep[] {
    const [confirmedSlot, finalizedSlot] = ALPENGLOW_LEVELS[randomInt(this.#random, ALPENGLOW_LEVELS.length)] as Levels
    const steps: CommitmentStep[] = []
    for (let slot = this.#finalized + 1; slot <= headSlot; slot++) {
      this.#confirm(Math.min(slot, headSlot - confirmedSlot), steps)
      this.#finalize(Math.min(slot, headSlot - finalizedSlot), steps)
    }
    return steps
  }

  #confirm(slot: number, steps: CommitmentStep[]): void {
    while (this.#confirmed < slot) this.#reach('confirmed', ++this.#confirmed, steps)
  }

  #finalize(slot: number, steps: CommitmentStep[]): void {
    while (this.#finalized < slot) this.#reach('finalized', ++this.#finalized, steps)
  }

  #reach(kind: CommitmentStep['kind'], slot: number, steps: CommitmentStep[]): void {
    if (slot >= 0) steps.push({ kind, slot })
  }
}

type Levels = readonly [confirmedSlots: number, finalizedSlots: number]

/** What an Alpenglow slot may look like when its block is frozen; every second time both levels are reached at once. */
const ALPENGLOW_LEVELS: readonly Levels[] = [
  [0, 0],
  [0, 0],
  [0, 1],
  [1, 1],
]
