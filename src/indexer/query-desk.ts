import type { Clock } from '../core/clock.ts'
import type { Logger } from '../host/logger.ts'
import type { IndexerMetrics } from './metrics.ts'
import { QueryError } from './query-error.ts'
import type { QueryDone, QueryJob } from './query-run.ts'
import { StoreGone, type StoreProcess } from './store-process.ts'

export type QueryDeskOptions = {
  /** Queries that run at a time: of one subscription, and of all together. */
  readonly concurrentPerSubscription: number
  readonly concurrent: number
  /** Resident memory at which the database process is ended; above what the engine may use by its own count. */
  readonly residentBytesMax: number
}

export type QueryDeskDeps = {
  /** Undefined while the database is being opened again. */
  readonly store: () => StoreProcess | undefined
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: IndexerMetrics
}

/** Where queries wait for nothing and are watched: too many are refused, too long ones stopped, and what cannot be stopped is ended. */
export type QueryDesk = Disposable & {
  /** Rejects with QueryError. */
  ask(subscriptionId: string, job: QueryJob, left: AbortSignal): Promise<QueryDone>
  readonly running: number
}

/** After its limit a query has this long to notice; then its process is ended. */
const GRACE_MS = 2_000
const MEMORY_LOOK_MS = 250
const RETRY_SECONDS = 1
/** A subscription whose queries had to be ended by force gets one at a time for this long. */
const PENALTY_MS = 10 * 60_000

const AWAY = 'The database is being started again. Try again shortly.'

export function createQueryDesk(options: QueryDeskOptions, deps: QueryDeskDeps): QueryDesk {
  const { clock, log, metrics } = deps
  const bySubscription = new Map<string, number>()
  const penaltyUntilMs = new Map<string, number>()
  let running = 0
  let lastId = 0

  function seatsOf(subscriptionId: string): number {
    const untilMs = penaltyUntilMs.get(subscriptionId)
    if (untilMs === undefined) return options.concurrentPerSubscription
    if (clock.monotonicMs() < untilMs) return 1
    penaltyUntilMs.delete(subscriptionId)
    return options.concurrentPerSubscription
  }

  function takeSeat(subscriptionId: string): Disposable {
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
  }

  function end(store: StoreProcess, why: string, subscription?: string): void {
    metrics.queryKills.inc()
    log.warn({ why, subscription, running }, 'database process ended to stop a query')
    if (subscription !== undefined) penaltyUntilMs.set(subscription, clock.monotonicMs() + PENALTY_MS)
    store.kill()
  }

  const memory = clock.setRepeating(MEMORY_LOOK_MS, () => {
    const store = running === 0 ? undefined : deps.store()
    const bytes = store?.residentBytes()
    if (store !== undefined && bytes !== undefined && bytes > options.residentBytesMax) end(store, 'memory')
  })

  return {
    get running() {
      return running
    },
    async ask(subscriptionId, job, left) {
      using _seat = takeSeat(subscriptionId)
      const store = deps.store()
      if (store === undefined) throw new QueryError('SOCKET_TIMEOUT', AWAY, RETRY_SECONDS)
      const id = ++lastId
      let isEnded = false
      const deadline = clock.setTimer(job.limits.secondsMax * 1000 + GRACE_MS, () => {
        isEnded = true
        end(store, 'time', subscriptionId)
      })
      const leave = (): void => void store.ask({ kind: 'interrupt', id }).catch(() => {})
      left.addEventListener('abort', leave, { once: true })
      try {
        if (left.aborted) throw new QueryError('QUERY_WAS_CANCELLED', 'Query was cancelled.')
        const answer = await store.ask({ kind: 'query', id, job })
        if (!answer.ok) throw new QueryError(answer.type, answer.message)
        return answer.done
      } catch (error) {
        if (isEnded) throw new QueryError('TIMEOUT_EXCEEDED', 'Timeout exceeded: the query ran longer than it may.')
        if (error instanceof StoreGone) throw new QueryError('SOCKET_TIMEOUT', AWAY, RETRY_SECONDS)
        if (error instanceof QueryError) throw error
        log.error({ err: error }, 'query failed in the database process')
        throw new QueryError('UNKNOWN_EXCEPTION', 'The query could not be run.')
      } finally {
        deadline.cancel()
        left.removeEventListener('abort', leave)
      }
    },
    [Symbol.dispose]: () => memory.cancel(),
  }
}
