import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type DuckDBConnection,
  DuckDBInstance,
  type DuckDBMaterializedResult,
  type DuckDBPendingResult,
  DuckDBPendingResultState,
} from '@duckdb/node-api'
import engine, { type PendingResult } from '@duckdb/node-bindings'
import { lowerThreads, threadsOfThisProcess } from '../process/thread-priority.ts'
import { createAppendChunks, type DuckAppender, wrapAppender } from './duckdb-appender.ts'
import { type DuckRows, wrapRows } from './duckdb-stream.ts'

/** A complete result. Types are DuckDB's own names, such as `UBIGINT` or `VARCHAR[]`; values are as its library gives them. */
export type DuckResponse = {
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  readonly rowCount: number
  /** Chunks of rows, each column by column. */
  pieces(): Iterable<readonly (readonly unknown[])[]>
}

export type DuckParams = Readonly<Record<string, string | number | bigint | null>>

export type DuckConnection = Disposable & {
  run(sql: string, params?: DuckParams): Promise<DuckResponse>
  /**
   * Streams rows in a transaction that was begun before. The work before the first row is done by DuckDB's threads only, which share all running
   * statements. With `threads` = 1 there are none.
   */
  streamOnWorkers(sql: string, params?: DuckParams): Promise<DuckRows>
  /** A prepared statement that runs on the calling thread as far as possible, without waiting for a pool thread. */
  prepareHere(sql: string): Promise<() => Promise<void>>
  /** Names of the columns without running the statement. */
  columnsOf(sql: string): Promise<readonly string[]>
  /** Interrupts the running statement between two chunks of 2048 rows; one that still waits for a thread is not interrupted. */
  interrupt(): void
  /** Rows are buffered until `flush`; after `clear` none of them is written. */
  appendTo(schema: string, table: string): Promise<DuckAppender>
}

export type DuckDatabase = Disposable & { connect(): Promise<DuckConnection> }

/** DuckDB's catalog name of a file: its name up to the first dot. */
export function catalogueOf(path: string): string {
  return path === ':memory:' ? 'memory' : (basename(path).split('.')[0] as string)
}

/** Opens the file, or memory with `:memory:`. Settings are DuckDB's own names. With `workersYield` DuckDB's threads have a lower priority. */
export async function openDuckDatabase(
  path: string,
  settings: Readonly<Record<string, string>> = {},
  { workersYield = false }: { readonly workersYield?: boolean } = {},
): Promise<DuckDatabase> {
  // Node starts its thread pool on first use; threads that appear after the next call are DuckDB's.
  await stat('.')
  const others = threadsOfThisProcess()
  const instance = await DuckDBInstance.create(path, { ...settings })
  if (workersYield) lowerThreads([...threadsOfThisProcess()].filter((thread) => !others.has(thread)))
  return {
    connect: async () => wrapConnection(await instance.connect()),
    [Symbol.dispose]: () => instance.closeSync(),
  }
}

function wrapConnection(connection: DuckDBConnection): DuckConnection {
  const chunkFor = createAppendChunks()
  return {
    async run(sql, params) {
      return wrapResponse(params === undefined ? await connection.run(sql) : await connection.run(sql, { ...params }))
    },
    async streamOnWorkers(sql, params) {
      const prepared = await connection.prepare(sql)
      try {
        if (params !== undefined) prepared.bind({ ...params })
        const pending = prepared.startStream()
        await untilDone(pending)
        return wrapRows(connection, prepared, await pending.getResult())
      } catch (error) {
        prepared.destroySync()
        throw error
      }
    },
    async prepareHere(sql) {
      const prepared = await connection.prepare(sql)
      return async () => {
        const pending = prepared.start()
        let state: DuckDBPendingResultState
        do state = pending.runTask()
        while (state === DuckDBPendingResultState.RESULT_NOT_READY)
        // Ready, or another thread works on it.
        await pending.getResult()
      }
    },
    async columnsOf(sql) {
      const prepared = await connection.prepare(sql)
      try {
        return Array.from({ length: prepared.columnCount }, (_, at) => prepared.columnName(at))
      } finally {
        prepared.destroySync()
      }
    },
    interrupt: () => connection.interrupt(),
    async appendTo(schema, table) {
      return wrapAppender(await connection.createAppender(table, schema), chunkFor)
    },
    [Symbol.dispose]: () => connection.disconnectSync(),
  }
}

/** Polls until the statement is done, less often the longer it takes: a fast one is not delayed, and many slow ones cost little. */
async function untilDone(pending: DuckDBPendingResult): Promise<void> {
  // The library has no call that polls without executing tasks; its wrapper holds the handle that DuckDB's own call takes.
  const { pending_result: handle } = pending as unknown as { readonly pending_result: PendingResult }
  const startedMs = performance.now()
  for (;;) {
    const state = engine.pending_execute_check_state(handle)
    if (state === engine.PendingState.RESULT_READY) return
    if (state === engine.PendingState.ERROR) {
      const message = engine.pending_error(handle)
      if (message !== '') throw new Error(message)
      // This call does not report a statement that ended earlier or that waits for its own tasks; fetching the result covers both.
      return
    }
    const waitedMs = performance.now() - startedMs
    if (waitedMs < LOOK_EAGERLY_MS) await new Promise((resolve) => setImmediate(resolve))
    else await delay(Math.min(waitedMs / 4, LOOK_MS))
  }
}

const LOOK_EAGERLY_MS = 1
const LOOK_MS = 10

function wrapResponse(result: DuckDBMaterializedResult): DuckResponse {
  const names = result.columnNames()
  const types = result.columnTypes()
  return {
    columns: names.map((name, at) => ({ name, type: String(types[at]) })),
    rowCount: result.rowCount,
    *pieces() {
      for (let at = 0; at < result.chunkCount; at++) yield result.getChunk(at).getColumns()
    },
  }
}
