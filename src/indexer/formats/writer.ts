import type { DuckColumnValues, DuckType } from '../../platform/db/duckdb-column.ts'
import { batchBytes, type ColumnBatch, clearBatch, createBatch } from './column-batch.ts'
import { fillerOf } from './fill-batch.ts'
import type { TypedColumn } from './value-type.ts'

/** Some output, or undefined where the caller can pause. The steps between two pieces are short. */
export type Piece = Uint8Array | string | undefined

/** Rows of a result, as the engine gives them. */
export type ResultChunk = {
  readonly rowCount: number
  column(at: number): DuckColumnValues
}

/** Time that the query took and what it read, as the JSON formats state them. */
export type QueryStatistics = { readonly elapsedSeconds: number; readonly rowsRead: number; readonly bytesRead: number }

/** Writes a result in a format: the head, the chunks in order, the tail. */
export type ResultWriter = {
  head(): Generator<Piece>
  rows(chunk: ResultChunk): Generator<Piece>
  /** `totals` is the row of WITH TOTALS. */
  tail(statistics: QueryStatistics, totals?: ResultChunk): Generator<Piece>
}

/** A format, written from batches of rows. */
export type BatchFormat = {
  head?(): Generator<Piece>
  batch(batches: readonly ColumnBatch[], rowCount: number): Generator<Piece>
  /** `totals` has one row; a format that has no place for it leaves it out, as ClickHouse does. */
  tail?(statistics: QueryStatistics, totals?: readonly ColumnBatch[]): Generator<Piece>
}

export type BatchLimits = { readonly rowsMax: number; readonly bytesMax: number }

/** Collects rows into batches: a batch is written when it reaches one of the limits, and at the end. */
export function writeBatches(
  columns: readonly TypedColumn[],
  engineTypes: readonly DuckType[],
  format: BatchFormat,
  { rowsMax, bytesMax }: BatchLimits,
): ResultWriter {
  const createBatches = () => columns.map(({ type }) => createBatch(type))
  const batches = createBatches()
  const fills = columns.map(({ type }, at) => fillerOf(engineTypes[at] as DuckType, type))
  let rowCount = 0

  function* fillBatches(into: readonly ColumnBatch[], chunk: ResultChunk): Generator<Piece> {
    for (const [at, fill] of fills.entries())
      for (const _ of fill(into[at] as ColumnBatch, chunk.column(at), 0, chunk.rowCount)) yield undefined
  }

  function* flush(): Generator<Piece> {
    if (rowCount === 0) return
    yield* format.batch(batches, rowCount)
    for (const batch of batches) clearBatch(batch)
    rowCount = 0
  }

  return {
    *head() {
      if (format.head !== undefined) yield* format.head()
    },
    *rows(chunk) {
      yield* fillBatches(batches, chunk)
      rowCount += chunk.rowCount
      const bytes = batches.reduce((sum, batch) => sum + batchBytes(batch), 0)
      if (rowCount >= rowsMax || bytes >= bytesMax) yield* flush()
    },
    *tail(statistics, totals) {
      yield* flush()
      if (format.tail === undefined) return
      const last = totals && createBatches()
      if (totals !== undefined && last !== undefined) yield* fillBatches(last, totals)
      yield* format.tail(statistics, last)
    },
  }
}
