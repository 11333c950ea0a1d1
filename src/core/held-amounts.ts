import { createTableMemory, SharedTable } from './shared-table.ts'
import { lockCell, unlockCell } from './spin-lock.ts'

/**
 * Amounts that are held at a time, by key and in total, over the threads of a process: connections of an address, bytes of a subscription. Each
 * thread counts its own, so that those of a thread that died can be released.
 */
export type HeldMemory = {
  /** A row for each key: what each thread holds. */
  readonly keys: SharedArrayBuffer
  /** Int32: the lock. Float64 from 8: the total of each thread. */
  readonly totals: SharedArrayBuffer
}

export type HeldMemoryOptions = { readonly threads: number; readonly keysMax?: number | undefined }

const KEYS_MAX = 65_536
const TOTALS_AT = 8
/** Keys whose hash is remembered. */
const MEMO_MAX = 16_384

export function createHeldMemory({ threads, keysMax = KEYS_MAX }: HeldMemoryOptions): HeldMemory {
  return {
    keys: createTableMemory({ keysMax, fields: threads }),
    totals: new SharedArrayBuffer(TOTALS_AT + 8 * threads),
  }
}

export type HeldMaxima = { readonly total: number; readonly key: number }
/** What would be exceeded. `total` also where the table has no row for one more key. */
export type HeldExcess = keyof HeldMaxima

/**
 * The amounts as one thread sees them. A take checks and adds under two locks, first that of the key, then that of the total. A release needs
 * none: only this thread writes its own numbers, and a row with an amount is not replaced. A thread that does not see a release of another
 * one yet refuses more, never less.
 */
export class HeldAmounts {
  readonly #table: SharedTable
  readonly #lock: Int32Array
  readonly #totals: Float64Array
  readonly #threads: number
  readonly #thread: number

  constructor({ keys, totals }: HeldMemory, thread: number) {
    this.#table = new SharedTable(keys, thread, { memoMax: MEMO_MAX })
    this.#lock = new Int32Array(totals, 0, 1)
    this.#totals = new Float64Array(totals, TOTALS_AT)
    this.#threads = this.#totals.length
    this.#thread = thread
  }

  /** Whether other threads take and release too. */
  get isShared(): boolean {
    return this.#threads > 1
  }

  /** Over all threads. */
  get total(): number {
    let sum = 0
    for (let thread = 0; thread < this.#threads; thread++) sum += this.#totals[thread] as number
    return sum
  }

  /** What this thread holds. */
  get own(): number {
    return this.#totals[this.#thread] as number
  }

  /** What is held under the key, over all threads. */
  of(key: string): number {
    const row = this.#table.find(this.#table.stripeOf(key))
    return row === 0 ? 0 : this.#sum(row)
  }

  /** What so much more would exceed. Changes nothing. */
  exceeds(key: string, amount: number, maxima: HeldMaxima): HeldExcess | undefined {
    if (this.total + amount > maxima.total) return 'total'
    return this.of(key) + amount > maxima.key ? 'key' : undefined
  }

  /** Takes the amount, or takes nothing and returns what it would exceed. */
  take(key: string, amount: number, maxima: HeldMaxima): HeldExcess | undefined {
    const table = this.#table
    const stripe = table.lock(key)
    let row = table.find(stripe)
    let excess: HeldExcess | undefined
    if ((row === 0 ? 0 : this.#sum(row)) + amount > maxima.key)
      excess = this.total + amount > maxima.total ? 'total' : 'key'
    else {
      if (row === 0) row = table.add(stripe, this.#isUnused)
      else table.touch(stripe, row)
      if (row === 0 || !this.#addToTotal(amount, maxima.total)) excess = 'total'
      else table.values[row + this.#thread] = (table.values[row + this.#thread] as number) + amount
    }
    table.unlock(stripe)
    return excess
  }

  /** Takes an amount that counts in the total only. */
  takeUnkeyed(amount: number, totalMax: number): HeldExcess | undefined {
    return this.#addToTotal(amount, totalMax) ? undefined : 'total'
  }

  release(key: string, amount: number): void {
    const { values } = this.#table
    const row = this.#table.find(this.#table.stripeOf(key))
    if (row !== 0) values[row + this.#thread] = (values[row + this.#thread] as number) - amount
    this.releaseUnkeyed(amount)
  }

  releaseUnkeyed(amount: number): void {
    this.#totals[this.#thread] = (this.#totals[this.#thread] as number) - amount
  }

  /** Releases what a thread that died has held. Called before the thread is started again. */
  reclaim(thread: number): void {
    this.#table.unlockAll(thread)
    Atomics.compareExchange(this.#lock, 0, thread + 1, 0)
    for (const row of this.#table.rows()) {
      if (this.#table.values[row + thread] !== 0) this.#table.values[row + thread] = 0
    }
    this.#totals[thread] = 0
  }

  #addToTotal(amount: number, totalMax: number): boolean {
    lockCell(this.#lock, 0, this.#thread + 1)
    const fits = this.total + amount <= totalMax
    if (fits) this.#totals[this.#thread] = (this.#totals[this.#thread] as number) + amount
    unlockCell(this.#lock, 0)
    return fits
  }

  #sum(row: number): number {
    const { values } = this.#table
    let sum = 0
    for (let thread = 0; thread < this.#threads; thread++) sum += values[row + thread] as number
    return sum
  }

  readonly #isUnused = (row: number): boolean => {
    const { values } = this.#table
    for (let thread = 0; thread < this.#threads; thread++) if (values[row + thread] !== 0) return false
    return true
  }
}
