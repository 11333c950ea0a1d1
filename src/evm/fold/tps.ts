/** Blocks in the window: two full ones and half of the newest. */
const BLOCKS = 3

/**
 * Transactions in a sliding window of 2.5 blocks, about a second at 400 ms a block. The newest block counts half. Blocks not seen yet
 * count 0.
 */
export class TpsFold {
  readonly #counts = new Float64Array(BLOCKS)
  #value = 0

  /** 0 until the first block. */
  get value(): number {
    return this.#value
  }

  /** A block has ended with this many transactions. */
  add(txnCount: number): number {
    this.#counts.copyWithin(0, 1)
    this.#counts[BLOCKS - 1] = txnCount
    const [oldest, middle, newest] = this.#counts as unknown as [number, number, number]
    this.#value = oldest + middle + Math.floor(newest / 2)
    return this.#value
  }

  reset(): void {
    this.#counts.fill(0)
    this.#value = 0
  }
}
