/** Numbers whose count is kept: reorganisations go back this far. */
const NUMBERS_MAX = 256

/**
 * Transactions in a sliding window of 2.5 blocks, about a second at 400 ms a block: the block that ended counts half, the two numbers before it count
 * fully. Each number counts once, with the latest proposal that was executed. There is no value until all three are known.
 */
export class TpsFold {
  /** Transactions by block number; the number executed last is at the end. */
  readonly #counts = new Map<number, number>()
  #value: number | undefined

  /** The value at the last end of a block; undefined where its window was not whole. */
  get value(): number | undefined {
    return this.#value
  }

  /** A block has ended with this many transactions. */
  add(number: number, txnCount: number): number | undefined {
    this.#counts.delete(number)
    this.#counts.set(number, txnCount)
    for (const oldest of this.#counts.keys()) {
      if (this.#counts.size <= NUMBERS_MAX) break
      this.#counts.delete(oldest)
    }
    const before = this.#counts.get(number - 1)
    const first = this.#counts.get(number - 2)
    this.#value = before === undefined || first === undefined ? undefined : first + before + Math.floor(txnCount / 2)
    return this.#value
  }

  /** The latest proposal of a number was not seen to its end. */
  forget(number: number): void {
    this.#counts.delete(number)
  }

  /** Blocks may have been missed: the window starts again. */
  reset(): void {
    this.#counts.clear()
    this.#value = undefined
  }
}
