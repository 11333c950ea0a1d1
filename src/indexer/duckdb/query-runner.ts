import type { DuckConnection, DuckDatabase } from '../../platform/db/duckdb.ts'
import { QueryError } from '../query/error.ts'
import type { QueryJob } from '../query/request.ts'
import { createFormatSlices, type FormatSlices } from './format-slices.ts'
import { createResultBudget, type HeldResult, type ResultBudgetOptions } from './held-result.ts'
import type { QueryResponse, StopReason } from './protocol.ts'
import { runQuery } from './run-query.ts'

/** Runs customers' statements concurrently in the database process, and holds their results until they are read. */
export type QueryRunner = {
  /** `owner` is the subscription that the result counts for. */
  run(id: number, job: QueryJob, owner: string): Promise<QueryResponse>
  /** The next part of a result after the first part, which `run` returned. Empty when there is no more. */
  read(id: number): Uint8Array
  /** Drops the rest of a result. */
  discard(id: number): void
  interrupt(id: number, reason: StopReason): void
  isRunning(): boolean
}

/** The time limit was reached, or the client disconnected. */
type Running = { connection: DuckConnection | undefined; stopReason: StopReason | undefined }

/** A statement that still waits for a thread does not receive an interrupt, so it is repeated until the statement ends. */
const REPEAT_MS = 100

const STOPPED = {
  timeout: { ok: false, type: 'TIMEOUT_EXCEEDED', message: 'Timeout exceeded: the query ran longer than it may.' },
  cancelled: { ok: false, type: 'QUERY_WAS_CANCELLED', message: 'Query was cancelled.' },
} as const

export function createQueryRunner(
  database: DuckDatabase,
  held: ResultBudgetOptions,
  { slices = createFormatSlices() }: { readonly slices?: FormatSlices } = {},
): QueryRunner {
  const budget = createResultBudget(held)
  const running = new Map<number, Running>()
  const unread = new Map<number, HeldResult>()

  function stop(id: number, reason: StopReason): void {
    const query = running.get(id)
    if (query === undefined) return
    query.stopReason ??= reason
    query.connection?.interrupt()
    setTimeout(() => stop(id, reason), REPEAT_MS)
  }

  return {
    async run(id, job, owner) {
      // Registered before it has a connection, so that an interrupt in between is not lost.
      const query: Running = { connection: undefined, stopReason: undefined }
      running.set(id, query)
      let timer: NodeJS.Timeout | undefined
      try {
        using connection = await database.connect()
        query.connection = connection
        const { result, ...summary } = await runQuery(connection, job, {
          nowMs: () => performance.now(),
          slices: slicesUntilStopped(slices, query),
          budget,
          owner,
          onStart(secondsMax) {
            timer = setTimeout(() => stop(id, 'timeout'), secondsMax * 1000)
          },
        })
        const { bytes } = result
        const first = result.read()
        if (result.bytes > 0) unread.set(id, result)
        return { ok: true, done: { ...summary, bytes, first } }
      } catch (error) {
        if (!(error instanceof QueryError)) throw error
        if (query.stopReason !== undefined) return STOPPED[query.stopReason]
        return { ok: false, type: error.type, message: error.message, retryAfterSeconds: error.retryAfterSeconds }
      } finally {
        clearTimeout(timer)
        running.delete(id)
      }
    },
    read(id) {
      const result = unread.get(id)
      const part = result?.read() ?? new Uint8Array()
      if (result?.bytes === 0) unread.delete(id)
      return part
    },
    discard(id) {
      unread.get(id)?.discard()
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
