import { createHash } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import { delay } from '../../platform/process/clock.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { IndexerMetrics } from '../metrics.ts'
import { StoreGone, type StoreProcess } from '../store/process.ts'
import type { QueryResponse } from '../store/protocol.ts'
import { QueryError } from './error.ts'
import { createQueryPermits, type QueryPermitsOptions, RETRY_SECONDS } from './permits.ts'
import { createQueryQuarantine } from './quarantine.ts'
import type { QueryJob } from './request.ts'
import { type QueryResult, readResult } from './result.ts'
import { createQueryScheduler, type ScheduledQuery } from './scheduler.ts'
import { GRACE_MS, type StuckReason, watchRun } from './watch-run.ts'

export type QueryExecutorOptions = QueryPermitsOptions & {
  /** Resident memory at which the database process is ended; above the engine's own memory limit. */
  readonly residentBytesMax: number
  /** Time limit of every query. */
  readonly secondsMax: number
}

export type QueryExecutorDeps = {
  /** Undefined while the database process is being restarted. */
  readonly store: () => StoreProcess | undefined
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: IndexerMetrics
}

/**
 * Runs queries in the database process within limits: queries over the concurrency limit wait or are refused, queries over the time limit are
 * interrupted, and a query that cannot be interrupted is ended with its process. The queries that ran in it then run again, each exclusively, so
 * that the one that caused the end is found.
 */
export type QueryExecutor = Disposable & {
  /** Rejects with QueryError. The result holds a permit until it is disposed of. */
  run(subscriptionId: string, job: QueryJob, disconnected: AbortSignal): Promise<QueryResult>
  readonly running: number
}

const MEMORY_CHECK_MS = 250
/** A restart of the database process usually takes less than a second. */
const REOPEN_MS = 10_000
const REOPEN_CHECK_MS = 50
const ATTEMPTS_MAX = 4
/** Strikes at which a query counts as the cause. Time and memory are measured and count fully; any other end has to happen twice. */
const PROOF = 2

const AWAY = 'The database is being started again. Try again shortly.'
const MEMORY = 'Memory limit exceeded: the query used up the memory of the database.'
const TIMEOUT = 'Timeout exceeded: the query ran longer than it may, and could not be stopped.'
const CRASH = 'The database process ended twice while this query ran alone; the usual cause is its memory.'

/** A query in the database process. */
type Run = {
  readonly subscriptionId: string
  readonly query: string
  readonly scheduled: ScheduledQuery
  readonly store: StoreProcess
  readonly startedMs: number
  /** Resident memory of the process when this query began. */
  readonly residentBytes: number
  /** How its process ended, and whether the query ran exclusively then. */
  end: { readonly reason: EndReason; readonly wasExclusive: boolean } | undefined
}

/** `crash`: the process ended by itself; otherwise this process ended it. */
type EndReason = StuckReason | 'memory' | 'crash'
type Lost = { readonly reason: EndReason | 'closed'; readonly strikes: number; readonly ranMs: number }

export function createQueryExecutor(options: QueryExecutorOptions, deps: QueryExecutorDeps): QueryExecutor {
  const { clock, log, metrics } = deps
  const permits = createQueryPermits(options, deps)
  const scheduler = createQueryScheduler()
  const quarantine = createQueryQuarantine(clock, { exclusiveMsMax: options.secondsMax * 1000 + GRACE_MS })
  const running = new Set<Run>()
  /** Processes that get no more queries. */
  const ended = new WeakSet<StoreProcess>()
  let lastId = 0

  /** Records, once, that a process ends and which queries ran in it. */
  function recordEnd(store: StoreProcess, reason: EndReason): void {
    if (ended.has(store)) return
    ended.add(store)
    const runs = [...running].filter((run) => run.store === store)
    const subscriptions = new Set(runs.map(({ subscriptionId }) => subscriptionId))
    log.warn(
      {
        reason,
        running: runs.length,
        subscriptions: [...subscriptions],
        queryHashes: runs.map(({ query }) => hashOf(query)),
      },
      'database process ended while queries ran',
    )
    for (const run of runs) run.end = { reason, wasExclusive: run.scheduled.isExclusive }
    if (!runs.some(({ scheduled }) => scheduled.isExclusive)) quarantine.suspect(subscriptions)
  }

  function end(store: StoreProcess, reason: EndReason): void {
    if (ended.has(store)) return
    metrics.queryKills.inc()
    recordEnd(store, reason)
    store.kill()
  }

  const memory = clock.setRepeating(MEMORY_CHECK_MS, () => {
    const store = running.size === 0 ? undefined : deps.store()
    if ((store?.residentBytes() ?? 0) > options.residentBytesMax) end(store as StoreProcess, 'memory')
  })

  /** Waits for the restart, so that queries which ran in the process that ended are not refused for it. */
  async function openStore(disconnected: AbortSignal): Promise<StoreProcess> {
    for (let waitedMs = 0; ; waitedMs += REOPEN_CHECK_MS) {
      if (disconnected.aborted) throw new QueryError('QUERY_WAS_CANCELLED', 'Query was cancelled.')
      const store = deps.store()
      if (store !== undefined && !ended.has(store)) return store
      if (waitedMs >= REOPEN_MS) throw new QueryError('SOCKET_TIMEOUT', AWAY, RETRY_SECONDS)
      await delay(clock, REOPEN_CHECK_MS)
    }
  }

  /** Interrupts the query at its time limit and with its client. Ends the process of a query that does not react to it. */
  function watch(store: StoreProcess, id: number, secondsMax: number, disconnected: AbortSignal): Disposable {
    return watchRun({ store, id, secondsMax, disconnected, onStuck: (reason) => end(store, reason) }, clock)
  }

  /** Runs the query once. Resolves with `Lost` when its process ended. */
  async function attempt(
    id: number,
    subscriptionId: string,
    job: QueryJob,
    exclusiveMs: number,
    disconnected: AbortSignal,
  ): Promise<{ response: Extract<QueryResponse, { ok: true }>; run: Run } | Lost> {
    using scheduled = await scheduler.start(exclusiveMs, disconnected)
    const store = await openStore(disconnected)
    quarantine.check(subscriptionId)
    const residentBytes = store.residentBytes() ?? 0
    const startedMs = clock.monotonicMs()
    const run: Run = { subscriptionId, query: job.query, scheduled, store, startedMs, residentBytes, end: undefined }
    using _sharing = clock.setTimer(exclusiveMs, () => scheduled.share())
    using _watch = watch(store, id, job.limits.secondsMax, disconnected)
    running.add(run)
    let isStreaming = false
    try {
      const response = await store.ask({ kind: 'query', id, job, owner: subscriptionId })
      if (!response.ok) {
        const { type, message, retryAfterSeconds, isUnrun = false } = response
        throw new QueryError(type, message, retryAfterSeconds, { isUnrun })
      }
      isStreaming = response.end === undefined
      return { response, run }
    } catch (error) {
      if (error instanceof StoreGone) return lost(run, error)
      if (error instanceof QueryError) throw error
      log.error({ err: error }, 'query failed in the database process')
      throw new QueryError('UNKNOWN_EXCEPTION', 'The query could not be run.')
    } finally {
      if (!isStreaming) running.delete(run)
    }
  }

  function lost(run: Run, { wasAtWork }: StoreGone): Lost {
    const ranMs = clock.monotonicMs() - run.startedMs
    // Closed by its supervisor, for instance because a write failed: no query caused it.
    if (run.end === undefined && !wasAtWork) {
      ended.add(run.store)
      return { reason: 'closed', strikes: 0, ranMs }
    }
    if (run.end === undefined) recordEnd(run.store, 'crash')
    const { reason, wasExclusive } = run.end ?? { reason: 'crash', wasExclusive: false }
    return { reason, strikes: wasExclusive ? strikesOf(reason, run) : 0, ranMs }
  }

  /** Strikes against a query that ran exclusively when its process ended. */
  function strikesOf(reason: EndReason, run: Run): number {
    if (reason === 'time') return PROOF
    // Memory that was in use before the query began does not count against it.
    if (reason === 'memory') return run.residentBytes <= options.residentBytesMax / 2 ? PROOF : 0
    return 1
  }

  async function runUntilDone(id: number, subscriptionId: string, job: QueryJob, disconnected: AbortSignal) {
    let exclusiveMs = quarantine.exclusiveMs(subscriptionId)
    let strikes = 0
    for (let attempts = 1; ; attempts++) {
      const done = await attempt(id, subscriptionId, job, exclusiveMs, disconnected)
      if ('response' in done) return done
      strikes += done.strikes
      if (strikes >= PROOF) {
        const fields = { subscription: subscriptionId, reason: done.reason, queryHash: hashOf(job.query) }
        log.warn(fields, 'a query ended the database process')
        quarantine.refuse(subscriptionId)
        throw causeOf(done.reason)
      }
      if (attempts === ATTEMPTS_MAX) throw new QueryError('SOCKET_TIMEOUT', AWAY, RETRY_SECONDS)
      // Long enough to repeat what it did before.
      exclusiveMs = Math.max(2 * exclusiveMs, 2 * done.ranMs + MEMORY_CHECK_MS)
    }
  }

  return {
    get running() {
      return permits.held
    },
    async run(subscriptionId, job, disconnected) {
      quarantine.check(subscriptionId)
      const permit = await permits.acquire(subscriptionId, disconnected)
      const id = ++lastId
      try {
        const { response, run } = await runUntilDone(id, subscriptionId, job, disconnected)
        const released = { [Symbol.dispose]: () => (running.delete(run), permit[Symbol.dispose]()) }
        if (response.end !== undefined) return readResult(id, response, { store: run.store, permit })
        return readResult(id, response, {
          store: run.store,
          permit: released,
          async watchRead(read) {
            using _watch = watch(run.store, id, job.limits.secondsMax, disconnected)
            return await read
          },
        })
      } catch (error) {
        permit[Symbol.dispose]()
        throw error
      }
    },
    [Symbol.dispose]: () => memory.cancel(),
  }
}

/** By which the log names a query, whose text may be private: the beginning of its SHA-256. */
function hashOf(query: string): string {
  return createHash('sha256').update(query).digest('hex').slice(0, 16)
}

/** The error of a query that ended its process. */
function causeOf(reason: Lost['reason']): QueryError {
  // Only a query beyond its time limit is found unresponsive.
  if (reason === 'time' || reason === 'unresponsive') return new QueryError('TIMEOUT_EXCEEDED', TIMEOUT)
  return new QueryError('MEMORY_LIMIT_EXCEEDED', reason === 'memory' ? MEMORY : CRASH)
}
