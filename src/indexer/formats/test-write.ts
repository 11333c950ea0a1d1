import type { DuckConnection } from '../../platform/db/duckdb.ts'
import type { DuckChunk } from '../../platform/db/duckdb-stream.ts'
import { engineType } from './column-type.ts'
import { createResultWriter } from './formats.ts'
import { type TypedColumn, typeName } from './value-type.ts'
import type { Piece } from './writer.ts'

/** The rows of a statement, which can be written in any format. */
export type TestRows = {
  readonly columns: readonly TypedColumn[]
  /** The columns as ClickHouse's table functions take them. */
  readonly structure: string
  write(format: string, revision?: number): Buffer
  pieces(format: string): Generator<Piece>
}

/** Runs a statement, without the SQL policy. The columns have the engine's types. */
export async function readRows(connection: DuckConnection, sql: string, { isNullable = true } = {}): Promise<TestRows> {
  await connection.run('BEGIN TRANSACTION READ ONLY')
  const chunks: DuckChunk[] = []
  await using rows = await connection.streamOnWorkers(sql)
  for (let chunk = await rows.next(); chunk !== undefined; chunk = await rows.next()) chunks.push(chunk)
  const columns = rows.columns.map(({ name, type }) => ({ name, type: engineType(type, { isNullable }) }))
  await connection.run('COMMIT')
  return {
    columns,
    structure: columns.map(({ name, type }) => `\`${name}\` ${typeName(type)}`).join(', '),
    write: (format, revision) =>
      Buffer.concat(Array.from(pieces(format, revision), (piece) => Buffer.from(piece ?? ''))),
    pieces,
  }

  function* pieces(format: string, revision = 0): Generator<Piece> {
    const engineTypes = rows.columns.map(({ type }) => type)
    const writer = createResultWriter(columns, engineTypes, { format, quote64: true, revision })
    yield* writer.head()
    for (const chunk of chunks) yield* writer.rows(chunk)
    yield* writer.tail(STATISTICS)
  }
}

const STATISTICS = { elapsedSeconds: 0, rowsRead: 0, bytesRead: 0 }
