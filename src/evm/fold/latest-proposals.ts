import type { Hex } from '../hex.ts'

/** Numbers whose latest proposal is remembered: reorganisations go back this far. */
const NUMBERS_MAX = 256

/** The proposal of each block number that was executed last. */
export class LatestProposals {
  readonly #ids = new Map<number, Hex>()

  /** A proposal was executed. Returns the id of the other proposal of its number that it replaces. */
  executed(number: number, id: Hex): Hex | undefined {
    const before = this.#ids.get(number)
    this.#ids.delete(number)
    this.#ids.set(number, id)
    for (const oldest of this.#ids.keys()) {
      if (this.#ids.size <= NUMBERS_MAX) break
      this.#ids.delete(oldest)
    }
    return before === id ? undefined : before
  }
}
