import type { Clock } from '../../core/clock.ts'
import { QueryError } from './error.ts'

/**
 * Isolates subscriptions whose queries ran when the database process had to be ended. A subscription is refused only when its query caused the end
 * while it ran exclusively. When several queries ran, none is refused: subscriptions that ran at several such ends start their queries exclusively,
 * for longer each time, until the cause shows. This ends after SUSPECT_MS, or when another subscription is found to be the cause, and not with a
 * query that does no harm.
 */
export type QueryQuarantine = {
  /** Throws QueryError when this subscription is refused now. */
  check(subscriptionId: string): void
  /** How long its next query is to run exclusively. */
  exclusiveMs(subscriptionId: string): number
  /** The process was ended while queries of all these subscriptions ran in it. */
  suspect(subscriptionIds: Iterable<string>): void
  /** A query of this subscription ran exclusively and caused the end of the process. */
  refuse(subscriptionId: string): void
}

const REFUSED_MS = 30_000
const REFUSED_MS_MAX = 30 * 60_000
/** After this long without a refusal, the next one is as short as the first. */
const FORGET_MS = 60 * 60_000
/** Ends of the process that are older are not considered. */
const SUSPECT_MS = 10 * 60_000
const EXCLUSIVE_MS = 1_000

export function createQueryQuarantine(
  clock: Clock,
  { exclusiveMsMax }: { readonly exclusiveMsMax: number },
): QueryQuarantine {
  const endsMs = new Map<string, number[]>()
  const refused = new Map<string, { readonly untilMs: number; readonly lengthMs: number }>()

  function recentEnds(subscriptionId: string): readonly number[] {
    const recent = (endsMs.get(subscriptionId) ?? []).filter((atMs) => clock.monotonicMs() - atMs < SUSPECT_MS)
    if (recent.length === 0) endsMs.delete(subscriptionId)
    else endsMs.set(subscriptionId, recent)
    return recent
  }

  return {
    check(subscriptionId) {
      const remainingMs = (refused.get(subscriptionId)?.untilMs ?? 0) - clock.monotonicMs()
      if (remainingMs <= 0) return
      const seconds = Math.ceil(remainingMs / 1000)
      throw new QueryError(
        'TOO_MANY_SIMULTANEOUS_QUERIES',
        `A query of this subscription could only be stopped by ending the database process. Its queries are accepted again in ${seconds} seconds.`,
        seconds,
      )
    },
    exclusiveMs(subscriptionId) {
      const ends = recentEnds(subscriptionId).length
      // One end may be a coincidence.
      return ends < 2 ? 0 : Math.min(EXCLUSIVE_MS * 2 ** (ends - 2), exclusiveMsMax)
    },
    suspect(subscriptionIds) {
      for (const subscriptionId of subscriptionIds)
        endsMs.set(subscriptionId, [...recentEnds(subscriptionId), clock.monotonicMs()])
    },
    refuse(subscriptionId) {
      const nowMs = clock.monotonicMs()
      const before = refused.get(subscriptionId)
      const isAgain = before !== undefined && nowMs - before.untilMs < FORGET_MS
      const lengthMs = isAgain ? Math.min(before.lengthMs * 4, REFUSED_MS_MAX) : REFUSED_MS
      for (const [other, { untilMs }] of refused) if (nowMs - untilMs >= FORGET_MS) refused.delete(other)
      refused.set(subscriptionId, { untilMs: nowMs + lengthMs, lengthMs })
      const own = endsMs.get(subscriptionId)
      endsMs.clear()
      if (own !== undefined) endsMs.set(subscriptionId, own)
    },
  }
}
