import type { DuckConnection, DuckDatabase } from '../../platform/db/duckdb.ts'
import { QueryError } from '../query/error.ts'
import { createFormatSlices, type FormatSlices } from './format-slices.ts'
import type { HeldResult } from './held-result.ts'
import type { QueryResponse } from './protocol.ts'
import { createResultBudget, type ResultBudgetOptions } from './result-budget.ts'
import { type QueryJob, runQuery } from './run-query.ts'

/** Statements of customers that run beside each other in the database process, and their results until they are read. */
export type QueryRunner = {
  /** `owner` is whose result it is. */
  run(id: number, job: QueryJob, owner: string): Promise<QueryResponse>
  /** The next part of a result whose first part was given by `run`. Empty when there is no more. */
  read(id: number): Uint8Array
  /** The rest of the result is not wanted. */
  discard(id: number): void
  interrupt(id: number, why: StopReason): void
  isRunning(): boolean
}

/** Its time is over, or its client has gone. */
export type StopReason = 'timeout' | 'cancelled'

type Running = { connection: DuckConnection | undefined; why: StopReason | undefined }

/** An interrupt is lost on a statement that still waits for a thread, so it is repeated until the statement ends. */
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

  function stop(id: number, why: StopReason): void {
    const query = running.get(id)
    if (query === undefined) return
    query.why ??= why
    query.connection?.interrupt()
    setTimeout(() => stop(id, why), REPEAT_MS)
  }

  return {
    async run(id, job, owner) {
      // Known before it has a connection: who leaves in between must not be forgotten.
      const query: Running = { connection: undefined, why: undefined }
      running.set(id, query)
      let timer: NodeJS.Timeout | undefined
      try {
        using connection = await database.connect()
        query.connection = connection
        const { result, ...summary } = await runQuery(connection, job, {
          nowMs: () => performance.now(),
          slices: whileWanted(slices, query),
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
        if (query.why !== undefined) return STOPPED[query.why]
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

/** Formatting stops at the next slice when the query is stopped: by then the engine may have made all of its rows. */
function whileWanted(slices: FormatSlices, query: Running): ReturnType<FormatSlices['open']> {
  const own = slices.open()
  return {
    isSpent: () => own.isSpent(),
    async yield() {
      await own.yield()
      if (query.why !== undefined) throw new QueryError('QUERY_WAS_CANCELLED', 'Query was cancelled.')
    },
  }
}
