import type { Clock } from '../core/clock.ts'
import type { IndexerMetrics } from './metrics.ts'
import { QueryError } from './query-error.ts'

export type QuerySeatsOptions = {
  /** Queries that run at a time: of one subscription, and of all together. */
  readonly concurrentPerSubscription: number
  readonly concurrent: number
}

/** How many queries run at a time. Nobody waits for a seat: too many are refused. */
export type QuerySeats = {
  readonly running: number
  /** Throws QueryError when there is none; the seat is free again when it is disposed of. */
  take(subscriptionId: string): Disposable
  /** From now on and for a while this subscription has one seat. */
  punish(subscriptionId: string): void
}

/** Seconds after which a refused query may find a seat. */
export const RETRY_SECONDS = 1
/** A subscription whose queries had to be ended by force gets one at a time for this long. */
const PENALTY_MS = 10 * 60_000

export function createQuerySeats(
  options: QuerySeatsOptions,
  { clock, metrics }: { readonly clock: Clock; readonly metrics: Pick<IndexerMetrics, 'running'> },
): QuerySeats {
  const bySubscription = new Map<string, number>()
  const penaltyUntilMs = new Map<string, number>()
  let running = 0

  function seatsOf(subscriptionId: string): number {
    const untilMs = penaltyUntilMs.get(subscriptionId)
    if (untilMs === undefined) return options.concurrentPerSubscription
    if (clock.monotonicMs() < untilMs) return 1
    penaltyUntilMs.delete(subscriptionId)
    return options.concurrentPerSubscription
  }

  return {
    get running() {
      return running
    },
    take(subscriptionId) {
      const own = bySubscription.get(subscriptionId) ?? 0
      const seats = seatsOf(subscriptionId)
      if (own >= seats)
        throw new QueryError(
          'TOO_MANY_SIMULTANEOUS_QUERIES',
          `Too many simultaneous queries of this subscription. Maximum: ${seats}.`,
          RETRY_SECONDS,
        )
      if (running >= options.concurrent)
        throw new QueryError(
          'TOO_MANY_SIMULTANEOUS_QUERIES',
          `Too many simultaneous queries on this server. Maximum: ${options.concurrent}.`,
          RETRY_SECONDS,
        )
      running++
      bySubscription.set(subscriptionId, own + 1)
      metrics.running.set(running)
      return {
        [Symbol.dispose]() {
          running--
          const left = (bySubscription.get(subscriptionId) ?? 1) - 1
          if (left === 0) bySubscription.delete(subscriptionId)
          else bySubscription.set(subscriptionId, left)
          metrics.running.set(running)
        },
      }
    },
    punish: (subscriptionId) => void penaltyUntilMs.set(subscriptionId, clock.monotonicMs() + PENALTY_MS),
  }
}
