import { createTableMemory, SharedTable } from './shared-table.ts'
import { TokenBucket } from './token-bucket.ts'

export type Taken = { readonly ok: true } | { readonly ok: false; readonly retryAfterMs: number }

export type KeyedBuckets = {
  /** Takes `cost`, one unless given, or returns how long to wait for it; Infinity where the cost exceeds the burst. */
  take(key: string, cost?: number): Taken
  /** Charges work that is already done. The bucket may go into debt, which delays the key's next `take`; returns for how many milliseconds. */
  charge(key: string, cost: number): number
  /** Keys whose bucket is not full. Counts them all. */
  readonly size: number
}

/** Keys remembered at once. Beyond it the least recently used are dropped and start again with a full bucket. */
const KEYS_MAX = 65_536

/** Float64 fields of a key. */
const AT_MS = 0
const LEVEL = 1
const FIELDS = 2

/** The memory of buckets, which all threads of a process may take from. */
export function createBucketMemory({ keysMax = KEYS_MAX } = {}): SharedArrayBuffer {
  return createTableMemory({ keysMax, fields: FIELDS })
}

const TAKEN: Taken = { ok: true }

/** One token bucket per key, such as a client address or a fee payer. The table is for this thread alone unless one is given. */
export function createKeyedBuckets(
  limits: { readonly perSecond: number; readonly burst: number },
  nowMs: () => number,
  table: SharedTable = new SharedTable(createBucketMemory(), 0),
): KeyedBuckets {
  const { values } = table
  /** The bucket at hand: its state is loaded from a row and stored there again. */
  const bucket = new TokenBucket({ capacity: limits.burst, perSecond: limits.perSecond }, nowMs())
  const full = bucket.parts
  let row = 0

  /** Locks the stripe of the key and loads its bucket. */
  function lock(key: string, now: number): number {
    const stripe = table.lock(key)
    row = table.find(stripe)
    if (row === 0) {
      row = table.add(stripe)
      bucket.load(full, now)
    } else {
      table.touch(stripe, row)
      bucket.load(values[row + LEVEL] as number, values[row + AT_MS] as number)
    }
    return stripe
  }

  function store(stripe: number): void {
    // The time first: a thread that dies in between loses the refill, and does not make it a second time.
    values[row + AT_MS] = bucket.atMs
    values[row + LEVEL] = bucket.parts
    table.unlock(stripe)
  }

  return {
    take(key, cost = 1) {
      const now = nowMs()
      const stripe = lock(key, now)
      const isTaken = bucket.take(cost, now)
      const retryAfterMs = isTaken ? 0 : bucket.waitMs(cost, now)
      store(stripe)
      return isTaken ? TAKEN : { ok: false, retryAfterMs }
    },
    charge(key, cost) {
      const now = nowMs()
      const stripe = lock(key, now)
      bucket.force(cost, now)
      const debtMs = bucket.waitMs(0, now)
      store(stripe)
      return debtMs
    },
    get size() {
      const now = nowMs()
      let size = 0
      for (const at of table.rows()) {
        bucket.load(values[at + LEVEL] as number, values[at + AT_MS] as number)
        if (bucket.fullInMs(now) > 0) size += 1
      }
      return size
    },
  }
}
