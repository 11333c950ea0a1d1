import { TokenBucket } from './token-bucket.ts'

export type Taken = { readonly ok: true } | { readonly ok: false; readonly retryAfterMs: number }

export type KeyedBuckets = {
  /** Takes `cost`, one unless given, or returns how long to wait for it; Infinity where the cost exceeds the burst. */
  take(key: string, cost?: number): Taken
  /** Charges work that is already done. The bucket may go into debt, which delays the key's next `take`. */
  charge(key: string, cost: number): void
  readonly size: number
}

/** Keys remembered at once. Beyond it the least recently used are dropped and start again with a full bucket. */
const KEYS_MAX = 65_536

/** One token bucket per key, such as a client address or a fee payer. A key whose bucket is full again is dropped. */
export function createKeyedBuckets(
  limits: { readonly perSecond: number; readonly burst: number },
  nowMs: () => number,
  keysMax: number = KEYS_MAX,
): KeyedBuckets {
  const shape = { capacity: limits.burst, perSecond: limits.perSecond }
  /** In the order of last use. */
  const buckets = new Map<string, TokenBucket>()
  return {
    take(key, cost = 1) {
      const now = nowMs()
      const bucket = use(key, now)
      return bucket.take(cost, now) ? { ok: true } : { ok: false, retryAfterMs: bucket.waitMs(cost, now) }
    },
    charge(key, cost) {
      const now = nowMs()
      use(key, now).force(cost, now)
    },
    get size() {
      return buckets.size
    },
  }

  function use(key: string, now: number): TokenBucket {
    const bucket = buckets.get(key) ?? new TokenBucket(shape, now)
    buckets.delete(key)
    dropOldest(now)
    buckets.set(key, bucket)
    return bucket
  }

  /** Two are examined for each use, so that the map shrinks again after a burst of keys. */
  function dropOldest(now: number): void {
    let examined = 0
    for (const [key, bucket] of buckets) {
      if (examined++ === 2) return
      if (buckets.size >= keysMax || bucket.fullInMs(now) === 0) buckets.delete(key)
    }
  }
}
