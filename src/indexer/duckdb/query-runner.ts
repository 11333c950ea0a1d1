import type { Clock } from '../../core/clock.ts'
import type { DuckConnection, DuckDatabase } from '../../platform/db/duckdb.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { QueryError } from '../query/error.ts'
import type { QueryJob } from '../query/request.ts'
import type {
  InterruptReason,
  QueryFailure,
  QueryResponse,
  ReadResponse,
  ResultEnd,
  ResultHead,
} from '../store/protocol.ts'
import { createFormatSlices, type FormatSlices } from './format-slices.ts'
import { createResultBudget, HeldResult, type ResultBudgetOptions, WINDOW_BYTES } from './held-result.ts'
import { runQuery } from './run-query.ts'
import { startWorkTimer, type WorkTimer } from './work-timer.ts'

/**
 * Runs customers' statements concurrently in the database process. A result that fits into the window is complete before it is returned; a larger one
 * is formatted as it is read, and its statement runs on meanwhile.
 */
export type QueryRunner = {
  /** `owner` is the subscription that the result counts for. */
  run(id: number, job: QueryJob, owner: string): Promise<QueryResponse>
  /** The next part of a result after the first part, which `run` returned. */
  read(id: number): Promise<ReadResponse>
  /** Drops the rest of a result, and stops its statement. */
  discard(id: number): void
  interrupt(id: number, reason: InterruptReason): void
  isRunning(): boolean
}

/** The time limit was reached, or the client disconnected. */
type Running = {
  connection: DuckConnection | undefined
  stopReason: InterruptReason | undefined
  /** The statement has passed its checks. */
  hasRun: boolean
}

/** A result that is not read to its end. `end` is undefined while its statement runs; `ended` resolves when it is over, with its failure if it has failed. */
type Unread = { readonly result: HeldResult; end: ResultEnd | undefined; ended: Promise<QueryFailure | undefined> }

/** A statement that still waits for a thread does not receive an interrupt, so it is repeated until the statement ends. */
const REPEAT_MS = 100

const STOPPED = {
  timeout: { ok: false, type: 'TIMEOUT_EXCEEDED', message: 'Timeout exceeded: the query ran longer than it may.' },
  cancelled: { ok: false, type: 'QUERY_WAS_CANCELLED', message: 'Query was cancelled.' },
} as const

export function createQueryRunner(
  database: DuckDatabase,
  held: ResultBudgetOptions,
  {
    slices = createFormatSlices(),
    clock = systemClock,
  }: { readonly slices?: FormatSlices; readonly clock?: Clock } = {},
): QueryRunner {
  const budget = createResultBudget(held)
  const running = new Map<number, Running>()
  const unread = new Map<number, Unread>()

  function stop(id: number, reason: InterruptReason): void {
    const query = running.get(id)
    if (query === undefined) return
    query.stopReason ??= reason
    query.connection?.interrupt()
    setTimeout(() => stop(id, reason), REPEAT_MS)
  }

  function failure(error: unknown, { stopReason, hasRun }: Omit<Running, 'connection'>): QueryFailure {
    if (!(error instanceof QueryError)) throw error
    if (stopReason !== undefined) return STOPPED[stopReason]
    const { type, message, retryAfterSeconds } = error
    return { ok: false, type, message, retryAfterSeconds, isUnrun: !hasRun }
  }

  async function execute(
    id: number,
    query: Running,
    job: QueryJob,
    result: HeldResult,
    onHead: (head: ResultHead) => void,
  ) {
    let timer: WorkTimer | undefined
    try {
      using connection = await database.connect()
      query.connection = connection
      return await runQuery(connection, job, {
        nowMs: () => performance.now(),
        slices: slicesUntilStopped(slices, query),
        result,
        onHead,
        onRun: () => (query.hasRun = true),
        onStart(secondsMax) {
          timer = startWorkTimer(clock, secondsMax * 1000, () => stop(id, 'timeout'))
        },
        onWait: (isWaiting) => timer?.pause(isWaiting),
      })
    } finally {
      timer?.[Symbol.dispose]()
      running.delete(id)
    }
  }

  return {
    async run(id, job, owner) {
      // Registered before it has a connection, so that an interrupt in between is not lost.
      const query: Running = { connection: undefined, stopReason: undefined, hasRun: false }
      running.set(id, query)
      const { bytesMax } = job.limits
      const windowBytes = job.isHeld ? Number.POSITIVE_INFINITY : WINDOW_BYTES
      const result = new HeldResult({ owner, bytesMax, windowBytes }, budget)
      let head: ResultHead | undefined
      const ended = execute(id, query, job, result, (given) => (head = given)).then(
        (end) => {
          open.end = end
          return undefined
        },
        (error: unknown) => {
          // Nothing is sent yet unless the result was larger than the window.
          if (!unread.has(id)) result.discard()
          if (!(error instanceof QueryError))
            result.fail(new QueryError('UNKNOWN_EXCEPTION', 'The query could not be run.'))
          const failed = failure(error, query)
          result.fail(new QueryError(failed.type, failed.message, failed.retryAfterSeconds))
          return failed
        },
      )
      const open: Unread = { result, end: undefined, ended }
      const failed = await Promise.race([ended, result.full])
      if (failed !== undefined) return failed
      const first = result.read()
      if (open.end === undefined || result.bytes > 0) unread.set(id, open)
      if (open.end === undefined) ended.catch(() => {})
      return { ok: true, head: head as ResultHead, first, end: open.end }
    },
    async read(id) {
      const open = unread.get(id)
      if (open === undefined) return STOPPED.cancelled
      try {
        const part = await open.result.next()
        // Everything was read before the statement has ended: its end comes a moment later.
        const failed = part.byteLength === 0 ? await open.ended : undefined
        if (failed !== undefined) {
          unread.delete(id)
          return failed
        }
        const isLast = open.end !== undefined && open.result.bytes === 0
        if (isLast) unread.delete(id)
        return { ok: true, part, end: isLast ? open.end : undefined }
      } catch (error) {
        unread.delete(id)
        open.result.discard()
        return failure(error, { stopReason: undefined, hasRun: true })
      }
    },
    discard(id) {
      stop(id, 'cancelled')
      unread.get(id)?.result.discard()
      unread.delete(id)
    },
    interrupt: stop,
    isRunning: () => running.size > 0,
  }
}

/** Stops formatting at the next slice when the query is stopped; the engine may have produced all of its rows by then. */
function slicesUntilStopped(slices: FormatSlices, query: Running): ReturnType<FormatSlices['open']> {
  const own = slices.open()
  return {
    isSpent: () => own.isSpent(),
    async yield() {
      await own.yield()
      if (query.stopReason !== undefined) throw new QueryError('QUERY_WAS_CANCELLED', 'Query was cancelled.')
    },
  }
}
