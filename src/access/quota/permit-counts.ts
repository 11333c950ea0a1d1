/** The number of permit kinds. */
export const PERMIT_KINDS = 3

/** Where the counts are: for each cell, thread and kind, and the sums for each thread and kind. */
export type PermitArrays = { readonly counts: Int32Array; readonly totals: Int32Array; readonly threads: number }

/** Permits in shared memory. Each thread counts its own, so that those of a thread that died can be released. */
export class PermitCounts {
  readonly #counts: Int32Array
  readonly #totals: Int32Array
  readonly #threads: number
  readonly #thread: number

  constructor({ counts, totals, threads }: PermitArrays, thread: number) {
    this.#counts = counts
    this.#totals = totals
    this.#threads = threads
    this.#thread = thread
  }

  /** Counts permits of this thread. */
  add(cell: number, kind: number, change: 1 | -1): void {
    Atomics.add(this.#counts, (cell * this.#threads + this.#thread) * PERMIT_KINDS + kind, change)
    Atomics.add(this.#totals, this.#thread * PERMIT_KINDS + kind, change)
  }

  /** Permits of an account, over all threads. */
  of(cell: number, kind: number): number {
    return this.#sum(this.#counts, cell * this.#threads, kind)
  }

  /** Permits of all accounts. */
  total(kind: number): number {
    return this.#sum(this.#totals, 0, kind)
  }

  hasAny(cell: number): boolean {
    for (let kind = 0; kind < PERMIT_KINDS; kind++) if (this.of(cell, kind) > 0) return true
    return false
  }

  /** Releases the permits of a thread that died. */
  reclaim(thread: number): void {
    for (let at = thread * PERMIT_KINDS; at < this.#counts.length; at += this.#threads * PERMIT_KINDS) {
      for (let kind = 0; kind < PERMIT_KINDS; kind++) {
        if (this.#counts[at + kind] !== 0) Atomics.store(this.#counts, at + kind, 0)
      }
    }
    for (let kind = 0; kind < PERMIT_KINDS; kind++) Atomics.store(this.#totals, thread * PERMIT_KINDS + kind, 0)
  }

  #sum(counts: Int32Array, first: number, kind: number): number {
    let sum = 0
    for (let thread = 0; thread < this.#threads; thread++)
      sum += Atomics.load(counts, (first + thread) * PERMIT_KINDS + kind)
    return sum
  }
}
