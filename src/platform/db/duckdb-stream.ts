import type { DuckDBConnection, DuckDBDataChunk, DuckDBPreparedStatement, DuckDBResult } from '@duckdb/node-api'
import { columnOf, type DuckColumnValues, type DuckType, duckTypeOf } from './duckdb-column.ts'

/** Some rows of a result. A value is converted when its row is read, so reading can pause between any two rows. */
export type DuckChunk = {
  readonly rowCount: number
  row(at: number): readonly unknown[]
  /** The values of a column as the engine holds them. */
  column(at: number): DuckColumnValues
}

/** Rows of a result as the engine produces them. It produces about a megabyte ahead of its reader and then waits. */
export type DuckRows = AsyncDisposable & {
  readonly columns: readonly { readonly name: string; readonly type: DuckType }[]
  /** The next rows, or undefined after the last ones. Rejects when the statement failed. */
  next(): Promise<DuckChunk | undefined>
}

/** The statement failed after its first rows. The library does not report why. */
export class StreamFailed extends Error {
  override readonly name = 'StreamFailed'
}

/**
 * `result` streams inside of an explicit transaction of `connection`. A stream that fails ends like one that is complete; but it leaves the
 * transaction aborted, so a statement after the end distinguishes the two.
 */
export function wrapRows(
  connection: DuckDBConnection,
  statement: DuckDBPreparedStatement,
  result: DuckDBResult,
): DuckRows {
  const names = result.columnNames()
  const types = result.columnTypes().map(duckTypeOf)
  let isOver = false

  async function fetch(): Promise<DuckDBDataChunk | undefined> {
    if (isOver) return undefined
    const chunk = await result.fetchChunk()
    if (chunk !== null && chunk.rowCount > 0) return chunk
    isOver = true
    return undefined
  }

  return {
    columns: names.map((name, at) => ({ name, type: types[at] as DuckType })),
    async next() {
      const chunk = await fetch()
      if (chunk !== undefined) return wrapChunk(chunk, types)
      try {
        await connection.run('SELECT 1')
      } catch (cause) {
        throw new StreamFailed('the statement failed after its first rows', { cause })
      }
      return undefined
    },
    async [Symbol.asyncDispose]() {
      // Waited for on a thread of the pool: closing the connection would wait for running tasks on the event loop.
      if (!isOver) connection.interrupt()
      while ((await fetch().catch(() => undefined)) !== undefined);
      statement.destroySync()
    },
  }
}

function wrapChunk(chunk: DuckDBDataChunk, types: readonly DuckType[]): DuckChunk {
  return {
    rowCount: chunk.rowCount,
    row: (at) => types.map((_, column) => chunk.getColumnVector(column).getItem(at)),
    column: (at) => columnOf(chunk, at, types[at] as DuckType),
  }
}
