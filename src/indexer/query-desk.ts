import type { Clock } from '../core/clock.ts'
import type { Logger } from '../host/logger.ts'
import type { IndexerMetrics } from './metrics.ts'
import { createQueryBlame } from './query-blame.ts'
import { QueryError } from './query-error.ts'
import type { QueryDone, QueryJob } from './query-run.ts'
import { createQuerySeats, type QuerySeatsOptions, RETRY_SECONDS } from './query-seats.ts'
import { StoreGone, type StoreProcess } from './store-process.ts'

export type QueryDeskOptions = QuerySeatsOptions & {
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

const AWAY = 'The database is being started again. Try again shortly.'
const MEMORY = 'Memory limit exceeded: the query used up the memory of the database.'

export function createQueryDesk(options: QueryDeskOptions, deps: QueryDeskDeps): QueryDesk {
  const { clock, log, metrics } = deps
  const seats = createQuerySeats(options, { metrics })
  const blame = createQueryBlame(clock)
  /** Who used up the memory of the process that was ended last. */
  let culprit: string | undefined
  /** It may take a while to die, and is blamed on nobody a second time. */
  let dying: StoreProcess | undefined
  let lastId = 0

  function end(store: StoreProcess, why: 'time' | 'memory', subscription: string | undefined): void {
    metrics.queryKills.inc()
    log.warn({ why, subscription, running: seats.running }, 'database process ended to stop a query')
    dying = store
    store.kill()
  }

  const memory = clock.setRepeating(MEMORY_LOOK_MS, () => {
    const store = seats.running === 0 ? undefined : deps.store()
    const bytes = store === dying ? undefined : store?.residentBytes()
    if (store === undefined || bytes === undefined || bytes <= options.residentBytesMax) return
    culprit = blame.blameRunning()
    end(store, 'memory', culprit)
  })

  return {
    get running() {
      return seats.running
    },
    async ask(subscriptionId, job, left) {
      blame.check(subscriptionId)
      using _seat = seats.take(subscriptionId)
      const store = deps.store()
      if (store === undefined) throw new QueryError('SOCKET_TIMEOUT', AWAY, RETRY_SECONDS)
      const id = ++lastId
      let isEnded = false
      let isHarmless = false
      const deadline = clock.setTimer(job.limits.secondsMax * 1000 + GRACE_MS, () => {
        isEnded = true
        blame.blame(subscriptionId)
        end(store, 'time', subscriptionId)
      })
      const leave = (): void => void store.ask({ kind: 'interrupt', id }).catch(() => {})
      left.addEventListener('abort', leave, { once: true })
      blame.started(subscriptionId)
      try {
        if (left.aborted) throw new QueryError('QUERY_WAS_CANCELLED', 'Query was cancelled.')
        const answer = await store.ask({ kind: 'query', id, job })
        isHarmless = true
        if (!answer.ok) throw new QueryError(answer.type, answer.message)
        return answer.done
      } catch (error) {
        if (isEnded) throw new QueryError('TIMEOUT_EXCEEDED', 'Timeout exceeded: the query ran longer than it may.')
        if (error instanceof StoreGone && culprit === subscriptionId)
          throw new QueryError('MEMORY_LIMIT_EXCEEDED', MEMORY)
        if (error instanceof StoreGone) throw new QueryError('SOCKET_TIMEOUT', AWAY, RETRY_SECONDS)
        if (error instanceof QueryError) throw error
        log.error({ err: error }, 'query failed in the database process')
        throw new QueryError('UNKNOWN_EXCEPTION', 'The query could not be run.')
      } finally {
        blame.ended(subscriptionId, isHarmless)
        deadline.cancel()
        left.removeEventListener('abort', leave)
      }
    },
    [Symbol.dispose]: () => memory.cancel(),
  }
}
