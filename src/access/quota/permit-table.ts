import type { Limits } from '../../contract/limits.ts'
import { createTimeSlices, type TimeSlices } from '../../platform/process/time-slices.ts'

/** What needs a permit while it is open; each has a limit of the same name. The kind of a permit is its index here. */
export const PERMIT_NAMES = ['wsConnections', 'wsSubscriptions', 'grpcStreams'] as const satisfies (keyof Limits)[]
export type PermitName = (typeof PERMIT_NAMES)[number]
export const PERMIT_KINDS = PERMIT_NAMES.length

/** Where the counts are: for each cell, thread and kind, and the sums for each thread and kind. `changed` has a bit for each cell. */
export type PermitArrays = {
  readonly counts: Int32Array
  readonly totals: Int32Array
  readonly changed: Int32Array
  readonly threads: number
}

/** Permits in shared memory. Each thread counts its own, so that those of a thread that died can be released. */
export class PermitTable {
  readonly #counts: Int32Array
  readonly #totals: Int32Array
  readonly #changed: Int32Array
  readonly #threads: number
  readonly #thread: number
  /** Where `takeChanged` continues. */
  #nextWord = 0

  constructor({ counts, totals, changed, threads }: PermitArrays, thread: number) {
    this.#counts = counts
    this.#totals = totals
    this.#changed = changed
    this.#threads = threads
    this.#thread = thread
  }

  /** Counts permits of this thread. */
  add(cell: number, kind: number, change: 1 | -1): void {
    Atomics.add(this.#counts, (cell * this.#threads + this.#thread) * PERMIT_KINDS + kind, change)
    Atomics.add(this.#totals, this.#thread * PERMIT_KINDS + kind, change)
    this.markChanged(cell)
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

  /** Releases the permits of a thread that died. Its number may be used again when they all are. */
  async reclaim(thread: number, cellsEnd: number, slices: TimeSlices = createTimeSlices()): Promise<void> {
    for (let cell = 1; cell < cellsEnd; cell++) {
      this.#reclaimCell(cell, (cell * this.#threads + thread) * PERMIT_KINDS)
      if (slices.isSpent()) await slices.yield()
    }
    for (let kind = 0; kind < PERMIT_KINDS; kind++) Atomics.store(this.#totals, thread * PERMIT_KINDS + kind, 0)
  }

  #reclaimCell(cell: number, first: number): void {
    for (let kind = 0; kind < PERMIT_KINDS; kind++) {
      if (this.#counts[first + kind] === 0) continue
      Atomics.store(this.#counts, first + kind, 0)
      this.markChanged(cell)
    }
  }

  /** The account is to be published. Set after its counts have changed, so that a change during a publication is in the next one. */
  markChanged(cell: number): void {
    Atomics.or(this.#changed, cell >>> 5, 1 << (cell & 31))
  }

  markAllChanged(cellsEnd: number): void {
    for (let word = 0; word < Math.ceil(cellsEnd / 32); word++) Atomics.store(this.#changed, word, -1)
  }

  /** About as many of the marked cells as `max`, a further word of them at most; their marks are removed. The rest is in the next calls. */
  takeChanged(cellsEnd: number, max: number): number[] {
    const words = Math.ceil(cellsEnd / 32)
    const cells: number[] = []
    for (let seen = 0; seen < words && cells.length < max; seen++) {
      const word = this.#nextWord < words ? this.#nextWord : 0
      this.#nextWord = word + 1
      if (Atomics.load(this.#changed, word) === 0) continue
      for (let bits = Atomics.exchange(this.#changed, word, 0); bits !== 0; bits &= bits - 1)
        cells.push(word * 32 + (31 - Math.clz32(bits & -bits)))
    }
    return cells
  }

  #sum(counts: Int32Array, first: number, kind: number): number {
    let sum = 0
    for (let thread = 0; thread < this.#threads; thread++)
      sum += Atomics.load(counts, (first + thread) * PERMIT_KINDS + kind)
    return sum
  }
}
