import type { Clock } from '../../core/clock.ts'
import { TokenBucket } from '../../core/token-bucket.ts'

/** Pages about oneself cost no units, but not nothing: so many a second, saved up for ten. */
export const PAGES_PER_SECOND = 20
const SAVED = 10 * PAGES_PER_SECOND
/** Subscriptions remembered; beyond it those that have not asked for a while are forgotten, and at worst all. */
const REMEMBERED_MAX = 10_000

export type PageBudget = {
  /** Whether the subscription may have one more page now; a page that takes more work counts as several. */
  take(subscriptionId: string, pages?: number): boolean
}

export function createPageBudget(clock: Clock): PageBudget {
  const buckets = new Map<string, TokenBucket>()

  function makeRoom(nowMs: number): void {
    for (const [id, bucket] of buckets) if (bucket.fullInMs(nowMs) === 0) buckets.delete(id)
    if (buckets.size >= REMEMBERED_MAX) buckets.clear()
  }

  return {
    take(subscriptionId, pages = 1) {
      const nowMs = clock.monotonicMs()
      let bucket = buckets.get(subscriptionId)
      if (bucket === undefined) {
        if (buckets.size >= REMEMBERED_MAX) makeRoom(nowMs)
        bucket = new TokenBucket({ capacity: SAVED, perSecond: PAGES_PER_SECOND }, nowMs)
        buckets.set(subscriptionId, bucket)
      }
      return bucket.take(pages, nowMs)
    },
  }
}
