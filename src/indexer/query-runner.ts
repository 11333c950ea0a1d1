import type { DuckConnection, DuckDatabase } from '../host/duckdb.ts'
import { QueryError } from './query-error.ts'
import { type QueryJob, runQuery } from './query-run.ts'
import type { QueryAnswer } from './store-protocol.ts'

/** Statements of customers that run beside each other in the database process. */
export type QueryRunner = {
  run(id: number, job: QueryJob): Promise<QueryAnswer>
  /** Its client has gone. */
  interrupt(id: number): void
  isRunning(): boolean
}

type Running = { connection: DuckConnection | undefined; why: 'timeout' | 'cancelled' | undefined }

/** An interrupt is lost on a statement that still waits for a thread, so it is repeated until the statement ends. */
const REPEAT_MS = 100

export function createQueryRunner(database: DuckDatabase): QueryRunner {
  const running = new Map<number, Running>()

  function stop(id: number, why: 'timeout' | 'cancelled'): void {
    const query = running.get(id)
    if (query === undefined) return
    query.why ??= why
    query.connection?.interrupt()
    setTimeout(() => stop(id, why), REPEAT_MS)
  }

  return {
    async run(id, job) {
      // Known before it has a connection: who leaves in between must not be forgotten.
      const query: Running = { connection: undefined, why: undefined }
      running.set(id, query)
      let timer: NodeJS.Timeout | undefined
      try {
        using connection = await database.connect()
        query.connection = connection
        const done = await runQuery(
          connection,
          job,
          () => performance.now(),
          (secondsMax) => {
            timer = setTimeout(() => stop(id, 'timeout'), secondsMax * 1000)
          },
        )
        return { ok: true, done }
      } catch (error) {
        if (!(error instanceof QueryError)) throw error
        const isTimeout = query.why === 'timeout' && error.type === 'QUERY_WAS_CANCELLED'
        return isTimeout
          ? { ok: false, type: 'TIMEOUT_EXCEEDED', message: 'Timeout exceeded: the query ran longer than it may.' }
          : { ok: false, type: error.type, message: error.message }
      } finally {
        clearTimeout(timer)
        running.delete(id)
      }
    },
    interrupt: (id) => stop(id, 'cancelled'),
    isRunning: () => running.size > 0,
  }
}
