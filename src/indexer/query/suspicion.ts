import type { Clock } from '../../core/clock.ts'
import { QueryError } from './error.ts'

/**
 * What is known about subscriptions whose queries ran when the database process had to be ended. Refused is only one whose query did it while it ran
 * alone. Where several ran nobody is refused: who ran at several such ends starts his queries alone, for longer each time, until the cause shows
 * itself. Suspicion ends with time, or with proof against another, and not with a query that did no harm.
 */
export type QuerySuspicion = {
  /** Throws QueryError when this subscription may not query now. */
  check(subscriptionId: string): void
  /** How long its next query is to run alone at first. */
  aloneMs(subscriptionId: string): number
  /** The process was ended while queries of all these ran in it. */
  ranTogether(subscriptionIds: Iterable<string>): void
  /** Its query ran alone and made the end of the process necessary. */
  proven(subscriptionId: string): void
}

const REFUSED_MS = 30_000
const REFUSED_MS_MAX = 30 * 60_000
/** Without a further proof for so long, the next one is a first one. */
const FORGET_MS = 60 * 60_000
/** Ends of the process that are older say nothing any more. */
const SUSPICION_MS = 10 * 60_000
const ALONE_MS = 1_000

export function createQuerySuspicion(clock: Clock, { aloneMsMax }: { readonly aloneMsMax: number }): QuerySuspicion {
  const endsMs = new Map<string, number[]>()
  const refused = new Map<string, { readonly untilMs: number; readonly lengthMs: number }>()

  function recentEnds(subscriptionId: string): readonly number[] {
    const recent = (endsMs.get(subscriptionId) ?? []).filter((atMs) => clock.monotonicMs() - atMs < SUSPICION_MS)
    if (recent.length === 0) endsMs.delete(subscriptionId)
    else endsMs.set(subscriptionId, recent)
    return recent
  }

  return {
    check(subscriptionId) {
      const leftMs = (refused.get(subscriptionId)?.untilMs ?? 0) - clock.monotonicMs()
      if (leftMs <= 0) return
      const seconds = Math.ceil(leftMs / 1000)
      throw new QueryError(
        'TOO_MANY_SIMULTANEOUS_QUERIES',
        `A query of this subscription could only be stopped by ending the database process. Its queries are accepted again in ${seconds} seconds.`,
        seconds,
      )
    },
    aloneMs(subscriptionId) {
      const ends = recentEnds(subscriptionId).length
      // Once is bad luck.
      return ends < 2 ? 0 : Math.min(ALONE_MS * 2 ** (ends - 2), aloneMsMax)
    },
    ranTogether(subscriptionIds) {
      for (const subscriptionId of subscriptionIds)
        endsMs.set(subscriptionId, [...recentEnds(subscriptionId), clock.monotonicMs()])
    },
    proven(subscriptionId) {
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
