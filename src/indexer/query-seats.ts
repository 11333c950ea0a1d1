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
}

/** Seconds after which a refused query may find a seat. */
export const RETRY_SECONDS = 1

export function createQuerySeats(
  options: QuerySeatsOptions,
  { metrics }: { readonly metrics: Pick<IndexerMetrics, 'running'> },
): QuerySeats {
  const bySubscription = new Map<string, number>()
  let running = 0

  return {
    get running() {
      return running
    },
    take(subscriptionId) {
      const own = bySubscription.get(subscriptionId) ?? 0
      if (own >= options.concurrentPerSubscription)
        throw new QueryError(
          'TOO_MANY_SIMULTANEOUS_QUERIES',
          `Too many simultaneous queries of this subscription. Maximum: ${options.concurrentPerSubscription}.`,
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
  }
}
