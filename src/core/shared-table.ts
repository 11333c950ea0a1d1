import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { lockCell, unlockCell } from './spin-lock.ts'
import { TextHash, TextHashMemo } from './text-hash.ts'

/**
 * A table in memory that threads share: a row of numbers for each key. A key is kept as its 64-bit hash.
 *
 * The memory has a header and stripes of 64 bytes or a multiple. A stripe has a lock and a fixed number of rows; the hash of a key chooses its
 * stripe. A full stripe replaces the row that was used least recently, of those the caller allows.
 *
 *     header   Int32: see HEADER
 *     stripe   Int32: see STRIPE; then low words of the hashes, high words, and the tick of last use, one of each for each row;
 *              then the rows, `fields` Float64 each
 *
 * A thread may die at any call or loop within a section. Rows therefore change such that each state in between is valid: the numbers of a row are
 * cleared before it gets its key, and a key of which one word is written belongs to nobody.
 */
export type TableMemoryOptions = {
  /** Keys that fit at least; more are kept where stripes have room. */
  readonly keysMax: number
  /** Numbers of each key. */
  readonly fields: number
  /** The seed of the hash. Random unless given. */
  readonly seed?: readonly [number, number] | undefined
}

const HEADER = { stripes: 0, fields: 1, seedLow: 2, seedHigh: 3 }
const HEADER_INTS = 16
/** `rows`: how many were ever used. `tick`: counts uses. */
const STRIPE = { lock: 0, rows: 1, tick: 2 }
const STRIPE_HEAD_INTS = 4
/**
 * So many that keys which may not be replaced find a row: with 20,000 of them in 65,536 rows, a stripe of one in 100,000 tables overflows.
 */
const STRIPE_ROWS = 32
const LOW_AT = STRIPE_HEAD_INTS
const HIGH_AT = LOW_AT + STRIPE_ROWS
const TICK_AT = HIGH_AT + STRIPE_ROWS
const VALUES_AT = TICK_AT + STRIPE_ROWS
/** A line of the processor's cache. */
const LINE_INTS = 16

/** Creates the memory. It is posted to the other threads as it is; what is not used of it is not touched. */
export function createTableMemory({ keysMax, fields, seed }: TableMemoryOptions): SharedArrayBuffer {
  const stripes = 2 ** Math.ceil(Math.log2(Math.max(1, keysMax / STRIPE_ROWS)))
  const memory = new SharedArrayBuffer((HEADER_INTS + stripes * stripeInts(fields)) * 4)
  const header = new Int32Array(memory, 0, HEADER_INTS)
  const random = randomBytes(8)
  header[HEADER.stripes] = stripes
  header[HEADER.fields] = fields
  header[HEADER.seedLow] = seed?.[0] ?? random.readInt32LE(0)
  header[HEADER.seedHigh] = seed?.[1] ?? random.readInt32LE(4)
  return memory
}

function stripeInts(fields: number): number {
  return Math.ceil((VALUES_AT + STRIPE_ROWS * fields * 2) / LINE_INTS) * LINE_INTS
}

/** Whether the row at this index of `values` may be replaced. */
export type IsReplaceable = (row: number) => boolean
const always: IsReplaceable = () => true

/** The table as one thread sees it. Rows are given by the index of their first number in `values`; 0 is none. */
export class SharedTable {
  readonly values: Float64Array
  readonly #ints: Int32Array
  readonly #stripes: number
  readonly #stripeInts: number
  readonly #fields: number
  readonly #hash: TextHash | TextHashMemo
  /** The key whose hash is in `#hash`. */
  #key: string | undefined
  /** The lock owner: 0 means unlocked. */
  readonly #owner: number

  /** `thread` counts from 0 and is used by one thread at a time. `memoMax`: so many hashes of keys are remembered, where keys are few and long. */
  constructor(memory: SharedArrayBuffer, thread: number, { memoMax = 0 } = {}) {
    this.#ints = new Int32Array(memory)
    this.values = new Float64Array(memory)
    this.#stripes = this.#ints[HEADER.stripes] as number
    this.#fields = this.#ints[HEADER.fields] as number
    assert(this.#stripes > 0 && this.#fields > 0, 'the memory is not that of a table')
    this.#stripeInts = stripeInts(this.#fields)
    const hash = new TextHash(this.#ints[HEADER.seedLow] as number, this.#ints[HEADER.seedHigh] as number)
    this.#hash = memoMax > 0 ? new TextHashMemo(hash, memoMax) : hash
    this.#owner = thread + 1
  }

  /** Locks the stripe of the key and returns it. Until `unlock` nothing may be called that allocates or throws. */
  lock(key: string): number {
    const stripe = this.stripeOf(key)
    lockCell(this.#ints, stripe + STRIPE.lock, this.#owner)
    return stripe
  }

  unlock(stripe: number): void {
    unlockCell(this.#ints, stripe + STRIPE.lock)
  }

  /** The stripe of the key, which the next `find` and `add` are for. */
  stripeOf(key: string): number {
    if (key !== this.#key) {
      this.#hash.update(key)
      this.#key = key
    }
    return HEADER_INTS + (this.#hash.low & (this.#stripes - 1)) * this.#stripeInts
  }

  /** The row of the key. Without the lock only a row that this thread keeps from being replaced is certain to be found, and to stay. */
  find(stripe: number): number {
    const ints = this.#ints
    const { low, high } = this.#hash
    const rows = ints[stripe + STRIPE.rows] as number
    for (let at = 0; at < rows; at++) {
      if (ints[stripe + LOW_AT + at] === low && ints[stripe + HIGH_AT + at] === high) return this.#rowAt(stripe, at)
    }
    return 0
  }

  /** Notes a use of the row. The caller holds the lock. */
  touch(stripe: number, row: number): void {
    const at = (row - ((stripe + VALUES_AT) >>> 1)) / this.#fields
    this.#ints[stripe + TICK_AT + at] = this.#nextTick(stripe)
  }

  /** A row of zeros for the key, which has none. 0 where every row of the stripe is in use. The caller holds the lock. */
  add(stripe: number, isReplaceable: IsReplaceable = always): number {
    const ints = this.#ints
    const rows = ints[stripe + STRIPE.rows] as number
    const at = rows < STRIPE_ROWS ? rows : this.#oldest(stripe, isReplaceable)
    if (at < 0) return 0
    const row = this.#rowAt(stripe, at)
    for (let field = 0; field < this.#fields; field++) this.values[row + field] = 0
    ints[stripe + LOW_AT + at] = this.#hash.low
    ints[stripe + HIGH_AT + at] = this.#hash.high
    ints[stripe + TICK_AT + at] = this.#nextTick(stripe)
    if (at === rows) ints[stripe + STRIPE.rows] = rows + 1
    return row
  }

  /** Every row that was ever used. Other threads may change them meanwhile. */
  *rows(): Generator<number> {
    for (let at = 0; at < this.#stripes; at++) {
      const stripe = HEADER_INTS + at * this.#stripeInts
      const rows = Atomics.load(this.#ints, stripe + STRIPE.rows)
      for (let row = 0; row < rows; row++) yield this.#rowAt(stripe, row)
    }
  }

  /** Releases the locks that a dead thread left. Without it the next thread waits for about a second. */
  unlockAll(thread: number): void {
    for (let at = 0; at < this.#stripes; at++) {
      const lock = HEADER_INTS + at * this.#stripeInts + STRIPE.lock
      if (Atomics.load(this.#ints, lock) === thread + 1) Atomics.compareExchange(this.#ints, lock, thread + 1, 0)
    }
  }

  #rowAt(stripe: number, at: number): number {
    return ((stripe + VALUES_AT) >>> 1) + at * this.#fields
  }

  #nextTick(stripe: number): number {
    const tick = ((this.#ints[stripe + STRIPE.tick] as number) + 1) | 0
    this.#ints[stripe + STRIPE.tick] = tick
    return tick
  }

  #oldest(stripe: number, isReplaceable: IsReplaceable): number {
    const tick = this.#ints[stripe + STRIPE.tick] as number
    let oldest = -1
    let oldestAge = -1
    for (let at = 0; at < STRIPE_ROWS; at++) {
      // Ticks wrap around, so the distance counts.
      const age = (tick - (this.#ints[stripe + TICK_AT + at] as number)) >>> 0
      if (age <= oldestAge || !isReplaceable(this.#rowAt(stripe, at))) continue
      oldest = at
      oldestAge = age
    }
    return oldest
  }
}
