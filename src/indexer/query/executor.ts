import type { Clock, Timer } from '../../core/clock.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { StoreGone, type StoreProcess } from '../duckdb/process.ts'
import type { QueryResponse } from '../duckdb/protocol.ts'
import type { QueryJob } from '../duckdb/run-query.ts'
import type { IndexerMetrics } from '../metrics.ts'
import { QueryError } from './error.ts'
import { createQueryPermits, type QueryPermitsOptions, RETRY_SECONDS } from './permits.ts'
import { type QueryResult, readResult } from './result.ts'
import { createQuerySuspicion } from './suspicion.ts'
import { createQueryTurns, type QueryTurn } from './turns.ts'

export type QueryExecutorOptions = QueryPermitsOptions & {
  /** Resident memory at which the database process is ended; above what the engine may use by its own count. */
  readonly residentBytesMax: number
  /** The longest that a query may run. */
  readonly secondsMax: number
}

export type QueryExecutorDeps = {
  /** Undefined while the database is being opened again. */
  readonly store: () => StoreProcess | undefined
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: IndexerMetrics
}

/**
 * Runs queries in the database process and watches them: too many wait or are refused, too long ones are stopped, and what cannot be stopped is ended
 * with its process. Queries that ran in it then are run again, one after another and alone, so that the one that did it is known.
 */
export type QueryExecutor = Disposable & {
  /** Rejects with QueryError. The result holds its permit until it is disposed of. */
  run(subscriptionId: string, job: QueryJob, left: AbortSignal): Promise<QueryResult>
  readonly running: number
}

/** After its interrupt has arrived a query has this long to end; then its process is ended. */
const GRACE_MS = 5_000
/** The event loop of the database process may be held by a large batch; one that does not serve for so long is ended. */
const DEAF_MS = 30_000
const MEMORY_LOOK_MS = 250
/** A database process is open again within a second as a rule. */
const REOPEN_MS = 10_000
const REOPEN_LOOK_MS = 50
const ATTEMPTS_MAX = 4
/** Strikes of one query that prove it was the cause. Time and memory are measured and prove it at once; what else ends a process has to happen again. */
const PROOF = 2

const AWAY = 'The database is being started again. Try again shortly.'
const MEMORY = 'Memory limit exceeded: the query used up the memory of the database.'
const TIMEOUT = 'Timeout exceeded: the query ran longer than it may, and could not be stopped.'

/** A query in the database process. */
type Run = {
  readonly subscriptionId: string
  readonly turn: QueryTurn
  readonly store: StoreProcess
  readonly startedMs: number
  /** Of the process when this query began. */
  readonly residentBytes: number
  /** How its process ended, and whether it ran alone then. */
  end: { readonly why: EndReason; readonly wasAlone: boolean } | undefined
}

/** Ended by this process for what it measured; or by itself. */
type EndReason = 'time' | 'memory' | 'deaf' | 'crash'
type Lost = { readonly why: EndReason | 'closed'; readonly strikes: number; readonly ranMs: number }

export function createQueryExecutor(options: QueryExecutorOptions, deps: QueryExecutorDeps): QueryExecutor {
  const { clock, log, metrics } = deps
  const permits = createQueryPermits(options, deps)
  const turns = createQueryTurns()
  const suspicion = createQuerySuspicion(clock, { aloneMsMax: options.secondsMax * 1000 + GRACE_MS })
  const running = new Set<Run>()
  /** Processes that no query is given to any more. */
  const ended = new WeakSet<StoreProcess>()
  let lastId = 0

  /** Notes, once, that a process ends and who ran in it. */
  function noteEnd(store: StoreProcess, why: EndReason): void {
    if (ended.has(store)) return
    ended.add(store)
    const runs = [...running].filter((run) => run.store === store)
    const subscriptions = new Set(runs.map(({ subscriptionId }) => subscriptionId))
    log.warn(
      { why, running: runs.length, subscriptions: [...subscriptions] },
      'database process ended while queries ran',
    )
    for (const run of runs) run.end = { why, wasAlone: run.turn.isAlone }
    if (!runs.some(({ turn }) => turn.isAlone)) suspicion.ranTogether(subscriptions)
  }

  /** It may take a while to die. */
  function end(store: StoreProcess, why: EndReason): void {
    if (ended.has(store)) return
    metrics.queryKills.inc()
    noteEnd(store, why)
    store.kill()
  }

  const memory = clock.setRepeating(MEMORY_LOOK_MS, () => {
    const store = running.size === 0 ? undefined : deps.store()
    if ((store?.residentBytes() ?? 0) > options.residentBytesMax) end(store as StoreProcess, 'memory')
  })

  /** Waits for the process to be open again: who ran in the one that ended is not refused for it. */
  async function openStore(left: AbortSignal): Promise<StoreProcess> {
    for (let waitedMs = 0; ; waitedMs += REOPEN_LOOK_MS) {
      if (left.aborted) throw new QueryError('QUERY_WAS_CANCELLED', 'Query was cancelled.')
      const store = deps.store()
      if (store !== undefined && !ended.has(store)) return store
      if (waitedMs >= REOPEN_MS) throw new QueryError('SOCKET_TIMEOUT', AWAY, RETRY_SECONDS)
      await new Promise<void>((resolve) => void clock.setTimer(REOPEN_LOOK_MS, resolve))
    }
  }

  /** At its limit the query is interrupted; only one that does not notice is ended with its process. */
  function watchTime(run: Run, id: number, secondsMax: number): Disposable {
    let timer: Timer = clock.setTimer(secondsMax * 1000, () => {
      timer = clock.setTimer(DEAF_MS, () => end(run.store, 'deaf'))
      run.store.ask({ kind: 'interrupt', id, why: 'timeout' }).then(
        () => {
          timer.cancel()
          if (running.has(run)) timer = clock.setTimer(GRACE_MS, () => end(run.store, 'time'))
        },
        () => {},
      )
    })
    return { [Symbol.dispose]: () => timer.cancel() }
  }

  /** Runs it once. Resolves with what became of it; `Lost` when its process ended. */
  async function attempt(
    id: number,
    subscriptionId: string,
    job: QueryJob,
    aloneMs: number,
    left: AbortSignal,
  ): Promise<{ response: Extract<QueryResponse, { ok: true }>; store: StoreProcess } | Lost> {
    using turn = await turns.enter(aloneMs, left)
    const store = await openStore(left)
    suspicion.check(subscriptionId)
    const residentBytes = store.residentBytes() ?? 0
    const run: Run = { subscriptionId, turn, store, startedMs: clock.monotonicMs(), residentBytes, end: undefined }
    using _sharing = clock.setTimer(aloneMs, () => turn.share())
    using _time = watchTime(run, id, job.limits.secondsMax)
    const leave = (): void => void store.ask({ kind: 'interrupt', id, why: 'cancelled' }).catch(() => {})
    left.addEventListener('abort', leave, { once: true })
    running.add(run)
    try {
      const response = await store.ask({ kind: 'query', id, job, owner: subscriptionId })
      if (!response.ok) throw new QueryError(response.type, response.message, response.retryAfterSeconds)
      return { response, store }
    } catch (error) {
      if (error instanceof StoreGone) return lost(run, error)
      if (error instanceof QueryError) throw error
      log.error({ err: error }, 'query failed in the database process')
      throw new QueryError('UNKNOWN_EXCEPTION', 'The query could not be run.')
    } finally {
      running.delete(run)
      left.removeEventListener('abort', leave)
    }
  }

  function lost(run: Run, { wasAtWork }: StoreGone): Lost {
    const ranMs = clock.monotonicMs() - run.startedMs
    // Closed by its keeper, because it could not write for instance: no query has a part in it.
    if (run.end === undefined && !wasAtWork) {
      ended.add(run.store)
      return { why: 'closed', strikes: 0, ranMs }
    }
    if (run.end === undefined) noteEnd(run.store, 'crash')
    const { why, wasAlone } = run.end ?? { why: 'crash', wasAlone: false }
    return { why, strikes: wasAlone ? strikesOf(why, run) : 0, ranMs }
  }

  /** What an end proves against the query that ran alone. */
  function strikesOf(why: EndReason, run: Run): number {
    if (why === 'time') return PROOF
    // Memory that was in use before it began is not its own.
    if (why === 'memory') return run.residentBytes <= options.residentBytesMax / 2 ? PROOF : 0
    return 1
  }

  async function runUntilDone(id: number, subscriptionId: string, job: QueryJob, left: AbortSignal) {
    let aloneMs = suspicion.aloneMs(subscriptionId)
    let strikes = 0
    for (let attempts = 1; ; attempts++) {
      const done = await attempt(id, subscriptionId, job, aloneMs, left)
      if ('response' in done) return done
      strikes += done.strikes
      if (strikes >= PROOF) {
        log.warn({ subscription: subscriptionId, why: done.why }, 'a query used up the database process')
        suspicion.proven(subscriptionId)
        throw done.why === 'time'
          ? new QueryError('TIMEOUT_EXCEEDED', TIMEOUT)
          : new QueryError('MEMORY_LIMIT_EXCEEDED', MEMORY)
      }
      if (attempts === ATTEMPTS_MAX) throw new QueryError('SOCKET_TIMEOUT', AWAY, RETRY_SECONDS)
      // Long enough to do again what it did before.
      aloneMs = Math.max(2 * aloneMs, 2 * done.ranMs + MEMORY_LOOK_MS)
    }
  }

  return {
    get running() {
      return permits.held
    },
    async run(subscriptionId, job, left) {
      suspicion.check(subscriptionId)
      const permit = await permits.acquire(subscriptionId, left)
      const id = ++lastId
      try {
        const { response, store } = await runUntilDone(id, subscriptionId, job, left)
        return readResult(id, response.done, { store, permit })
      } catch (error) {
        permit[Symbol.dispose]()
        throw error
      }
    },
    [Symbol.dispose]: () => memory.cancel(),
  }
}
