import type { Clock } from '../core/clock.ts'
import { createKeyedBuckets } from '../core/keyed-buckets.ts'
import type { SharedTable } from '../core/shared-table.ts'

/**
 * Requests of one subscription that may fail their checks without a charge. Checking is work, so those beyond the rate are charged, which limits them by
 * the plan.
 */
export const FREE_REFUSALS = { perSecond: 10, burst: 100 }
/** Each such part of a request counts as one more, up to the burst: a larger one would be charged however few there are. */
const REFUSAL_BYTES = 16 * 1024

export type FreeRefusals = {
  /** Whether a request of this size that was refused by its checks is free. */
  take(subscription: string, bytes: number): boolean
}

/** Without `table` the refusals are counted for this thread alone. */
export function createFreeRefusals(clock: Pick<Clock, 'monotonicMs'>, table?: SharedTable): FreeRefusals {
  const buckets = createKeyedBuckets(FREE_REFUSALS, () => clock.monotonicMs(), table)
  const costOf = (bytes: number) => Math.min(1 + bytes / REFUSAL_BYTES, FREE_REFUSALS.burst)
  return { take: (subscription, bytes) => buckets.take(subscription, costOf(bytes)).ok }
}
