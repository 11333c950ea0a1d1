import { nanosBetween } from '../ring/event-batch.ts'

/** The four events whose times give the duration of a transaction. */
export const MOMENT = { perfEnter: 0, perfExit: 1, headerStart: 2, end: 3 } as const

export type Moment = (typeof MOMENT)[keyof typeof MOMENT]

const MOMENTS = 4
const ALL_PERF = 0b0011
const ALL_HEADER = 0b1100

/**
 * Sum of the durations of a block's transactions. A duration is the span between the perf markers, or from header to end where they are
 * missing. It includes waiting for earlier transactions and re-execution, so the sum is not processor time.
 */
export class TxnTimes {
  #seen = new Uint8Array(0)
  #low = new Uint32Array(0)
  #high = new Uint32Array(0)
  #txns = 0

  begin(txns: number): void {
    if (txns > this.#seen.length) {
      const capacity = 2 ** Math.ceil(Math.log2(txns))
      this.#seen = new Uint8Array(capacity)
      this.#low = new Uint32Array(capacity * MOMENTS)
      this.#high = new Uint32Array(capacity * MOMENTS)
    } else this.#seen.fill(0, 0, txns)
    this.#txns = txns
  }

  mark(txn: number, moment: Moment, low: number, high: number): void {
    const at = txn * MOMENTS + moment
    this.#seen[txn] = (this.#seen[txn] as number) | (1 << moment)
    this.#low[at] = low
    this.#high[at] = high
  }

  totalNs(): number {
    let total = 0
    for (let txn = 0; txn < this.#txns; txn++) {
      const seen = this.#seen[txn] as number
      if ((seen & ALL_PERF) === ALL_PERF) total += this.#span(txn, MOMENT.perfEnter, MOMENT.perfExit)
      else if ((seen & ALL_HEADER) === ALL_HEADER) total += this.#span(txn, MOMENT.headerStart, MOMENT.end)
    }
    return total
  }

  #span(txn: number, from: Moment, to: Moment): number {
    const at = txn * MOMENTS
    return nanosBetween(
      this.#low[at + from] as number,
      this.#high[at + from] as number,
      this.#low[at + to] as number,
      this.#high[at + to] as number,
    )
  }
}
