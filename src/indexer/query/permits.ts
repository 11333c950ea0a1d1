import type { Clock } from '../../core/clock.ts'
import type { IndexerMetrics } from '../metrics.ts'
import { QueryError } from './error.ts'

export type QueryPermitsOptions = {
  /** Concurrent queries of one subscription and of all, each counted until the client has read the last byte of its result. */
  readonly concurrentPerSubscription: number
  readonly concurrent: number
  /** Most queries that wait for a permit, and the longest wait. */
  readonly waitingMax: number
  readonly waitSecondsMax: number
}

/**
 * Limits the number of concurrent queries. A subscription over its own limit is refused. Near the common limit a query waits: the more permits its
 * subscription holds, the more have to be free, so that a few subscriptions cannot hold all of them. Of the waiting subscriptions the one that
 * was served longest ago is next.
 */
export type QueryPermits = {
  readonly held: number
  readonly waiting: number
  /** Rejects with QueryError at a limit. Disposing of the permit releases it; further calls do nothing. */
  acquire(subscriptionId: string, disconnected: AbortSignal): Promise<Disposable>
}

/** Seconds after which a refused query may get a permit. */
export const RETRY_SECONDS = 1

/** A subscription that holds permits or waits for one. */
type Account = { held: number; waiting: number; servedAt: number }
type Waiting = { readonly account: Account; grant(): void }

export function createQueryPermits(
  options: QueryPermitsOptions,
  { clock, metrics }: { readonly clock: Clock; readonly metrics: Pick<IndexerMetrics, 'running'> },
): QueryPermits {
  const accounts = new Map<string, Account>()
  const queue: Waiting[] = []
  let held = 0
  let served = 0

  function isFreeFor(account: Account): boolean {
    return held + account.held < options.concurrent
  }

  function forgetIdle(subscriptionId: string, account: Account): void {
    if (account.held + account.waiting === 0) accounts.delete(subscriptionId)
  }

  function hold(subscriptionId: string, account: Account): Disposable {
    held++
    account.held++
    account.servedAt = ++served
    metrics.running.set(held)
    let isHeld = true
    return {
      [Symbol.dispose]() {
        if (!isHeld) return
        isHeld = false
        held--
        account.held--
        metrics.running.set(held)
        forgetIdle(subscriptionId, account)
        grantNext()
      },
    }
  }

  function grantNext(): void {
    for (;;) {
      const [first, ...others] = queue.filter(({ account }) => isFreeFor(account))
      if (first === undefined) return
      others.reduce((best, one) => (one.account.servedAt < best.account.servedAt ? one : best), first).grant()
    }
  }

  function wait(subscriptionId: string, account: Account, disconnected: AbortSignal): Promise<Disposable> {
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        queue.splice(queue.indexOf(waiting), 1)
        account.waiting--
        timer.cancel()
        disconnected.removeEventListener('abort', onDisconnect)
      }
      const fail = (error: QueryError): void => {
        settle()
        forgetIdle(subscriptionId, account)
        reject(error)
      }
      const onDisconnect = (): void => fail(cancelled())
      const timer = clock.setTimer(options.waitSecondsMax * 1000, () => fail(refusal(options, 'concurrent')))
      const waiting: Waiting = {
        account,
        grant() {
          settle()
          resolve(hold(subscriptionId, account))
        },
      }
      account.waiting++
      queue.push(waiting)
      disconnected.addEventListener('abort', onDisconnect, { once: true })
    })
  }

  return {
    get held() {
      return held
    },
    get waiting() {
      return queue.length
    },
    async acquire(subscriptionId, disconnected) {
      if (disconnected.aborted) throw cancelled()
      const account = accounts.get(subscriptionId) ?? { held: 0, waiting: 0, servedAt: 0 }
      if (account.held + account.waiting >= options.concurrentPerSubscription)
        throw refusal(options, 'concurrentPerSubscription')
      const isFree = isFreeFor(account)
      if (!isFree && queue.length >= options.waitingMax) throw refusal(options, 'waitingMax')
      accounts.set(subscriptionId, account)
      return isFree ? hold(subscriptionId, account) : wait(subscriptionId, account, disconnected)
    },
  }
}

function cancelled(): QueryError {
  return new QueryError('QUERY_WAS_CANCELLED', 'Query was cancelled.')
}

function refusal(options: QueryPermitsOptions, limit: keyof QueryPermitsOptions): QueryError {
  return new QueryError(
    'TOO_MANY_SIMULTANEOUS_QUERIES',
    `Too many simultaneous queries: the limit indexer.query.${limit} is ${options[limit]}. A query counts until its result is read. Try again in ${RETRY_SECONDS} seconds.`,
    RETRY_SECONDS,
  )
}
