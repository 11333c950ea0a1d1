import { TokenBucket } from '../core/token-bucket.ts'

export type KeyedBuckets = {
  /** Takes one, or says how long to wait for it. */
  take(key: string): { readonly ok: true } | { readonly ok: false; readonly retryAfterMs: number }
  readonly size: number
}

/** Keys remembered at once; beyond it the ones seen longest ago are forgotten, and begin anew with a full bucket. */
const KEYS_MAX = 65_536

/** A bucket for each address or fee payer. Only keys that used theirs lately are remembered. */
export function createKeyedBuckets(
  limits: { readonly perSecond: number; readonly burst: number },
  nowMs: () => number,
  keysMax: number = KEYS_MAX,
): KeyedBuckets {
  const shape = { capacity: limits.burst, perSecond: limits.perSecond }
  /** In the order of last use. */
  const buckets = new Map<string, TokenBucket>()
  return {
    take(key) {
      const now = nowMs()
      const bucket = buckets.get(key) ?? new TokenBucket(shape, now)
      const isTaken = bucket.take(1, now)
      buckets.delete(key)
      buckets.set(key, bucket)
      forgetOldest(now)
      return isTaken ? { ok: true } : { ok: false, retryAfterMs: bucket.waitMs(1, now) }
    },
    get size() {
      return buckets.size
    },
  }

  /** A full bucket is as good as none; two are looked at for each one added, so that the map shrinks again. */
  function forgetOldest(now: number): void {
    let looks = 2
    for (const [key, bucket] of buckets) {
      if (looks-- === 0) return
      if (buckets.size > keysMax || bucket.fullInMs(now) === 0) buckets.delete(key)
    }
  }
}
