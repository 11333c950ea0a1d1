import type { LimitName } from '../../contract/limits.ts'
import type { BucketTerms, CallTerms, Terms } from '../terms.ts'
import type { OverLimit } from './charge.ts'
import type { QuotaContext } from './context.ts'
import type { QuotaMemory } from './memory.ts'
import { ACCOUNT, BUCKET } from './memory-layout.ts'
import { capacityOf } from './rules.ts'

/** How long a call waits for its limits; account and bucket are given by their cells. The caller holds the account's lock. */

/** The shortest interval between bookings that only refresh the level, and the retry time of a call that waits for a booking. */
export const REBOOK_MS = 50

/** The limit with the longest wait, for a call that is refused. `bucketCells` has the cell of each bucket of the terms. */
export function longestWait(
  { memory, calendar, isShared }: QuotaContext,
  account: number,
  bucketCells: readonly number[],
  { buckets }: Terms,
  { draws, cost }: CallTerms,
  nowMs: number,
): Pick<OverLimit, 'limitName' | 'limitSize' | 'retryAfterMs'> {
  const shortestMs = isShared ? REBOOK_MS : 0
  const unitsPerMonth = memory.float(account, ACCOUNT.unitsPerMonth)
  let limitName: LimitName = isShared ? 'unitsPerSecond' : 'unitsPerMonth'
  let limitSize = 0
  let retryAfterMs = 0
  for (const { bucket, amount } of draws) {
    const cell = bucketCells[bucket] as number
    const parts = amount * memory.float(cell, BUCKET.partsPerUnit)
    const needMs = Math.max(shortestMs, msUntil(memory, account, cell, parts))
    if (needMs <= retryAfterMs) continue
    const { limit, perSecond } = buckets[bucket] as BucketTerms
    limitName = limit
    limitSize = perSecond
    retryAfterMs = needMs
  }
  const isMonthSpent = memory.float(account, ACCOUNT.used) + cost > memory.float(account, ACCOUNT.monthCeiling)
  if (unitsPerMonth !== Number.POSITIVE_INFINITY && (isMonthSpent || (isShared && draws.length === 0))) {
    const needMs = cost > unitsPerMonth ? Number.POSITIVE_INFINITY : calendar.untilNextMonthMs(nowMs)
    if (needMs >= retryAfterMs) {
      limitName = 'unitsPerMonth'
      limitSize = unitsPerMonth
      retryAfterMs = isMonthSpent ? needMs : REBOOK_MS
    }
  }
  return { limitName, limitSize, retryAfterMs }
}

/** Until the bucket has so many parts, without other calls; Infinity when it never will. */
export function msUntil(memory: QuotaMemory, account: number, bucket: number, parts: number): number {
  const missing = parts - memory.float(bucket, BUCKET.level)
  if (missing <= 0) return 0
  const partsPerMs = memory.float(bucket, BUCKET.partsPerMs) * memory.float(account, ACCOUNT.share)
  const isNever = parts > capacityOf(memory, account, bucket) || partsPerMs === 0
  return isNever ? Number.POSITIVE_INFINITY : Math.ceil(missing / partsPerMs)
}
