import type { PerformanceSample } from './model.ts'

export const SAMPLE_SECONDS = 60
/** PERFORMANCE_SAMPLES_LIMIT of Agave: twelve hours. */
export const SAMPLES_MAX = 720

/** Counts blocks and transactions per minute as blocks are added, so that reading them does not read the ledger. */
export class PerformanceSamples {
  /** Oldest first; the last one is of the current minute. */
  readonly #samples: { minute: number; sample: PerformanceSample }[] = []

  add(block: { readonly slot: number; readonly time: number }, transactions: number, votes: number): void {
    const minute = Math.floor(block.time / SAMPLE_SECONDS)
    const last = this.#samples.at(-1)
    const known = last?.minute === minute ? last.sample : EMPTY
    const sample: PerformanceSample = {
      slot: block.slot,
      slots: known.slots + 1,
      transactions: known.transactions + transactions,
      votes: known.votes + votes,
    }
    if (last?.minute === minute) last.sample = sample
    else this.#samples.push({ minute, sample })
    // One more than the maximum: the current minute is not returned.
    if (this.#samples.length > SAMPLES_MAX + 1) this.#samples.shift()
  }

  /** The samples of complete minutes, newest first. */
  newest(limit: number): PerformanceSample[] {
    const complete = this.#samples.slice(0, -1).reverse()
    return complete.slice(0, limit).map(({ sample }) => sample)
  }
}

const EMPTY: PerformanceSample = { slot: 0, slots: 0, transactions: 0, votes: 0 }
