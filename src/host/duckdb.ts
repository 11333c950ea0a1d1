import { basename } from 'node:path'
import {
  BIGINT,
  BOOLEAN,
  type DuckDBAppender,
  type DuckDBConnection,
  DuckDBDataChunk,
  DuckDBInstance,
  type DuckDBMaterializedResult,
  DuckDBTimestampSecondsValue,
  type DuckDBType,
  type DuckDBValue,
  LIST,
  listValue,
  SMALLINT,
  TIMESTAMP_S,
  UBIGINT,
  UINTEGER,
  USMALLINT,
  UTINYINT,
  VARCHAR,
} from '@duckdb/node-api'

/** Kinds of column this side writes. */
export type DuckKind = 'u64' | 'u32' | 'u16' | 'u8' | 'i64' | 'i16' | 'bool' | 'time' | 'text' | 'texts'

export type DuckColumn = { readonly name: string; readonly kind: DuckKind }

/** Texts of rows in column order; which kind stands where, the columns say. A `time` is seconds since 1970. */
export type DuckRow = readonly (string | number | bigint | boolean | readonly string[])[]

/** A whole answer. Types are DuckDB's own names, such as `UBIGINT` or `VARCHAR[]`; values are as its library gives them. */
export type DuckAnswer = {
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  readonly rowCount: number
  /** Column by column, a piece of the rows at a time. */
  pieces(): Iterable<readonly (readonly unknown[])[]>
}

export type DuckParams = Readonly<Record<string, string | number | bigint | null>>

export type DuckConnection = Disposable & {
  run(sql: string, params?: DuckParams): Promise<DuckAnswer>
  /** Names of the columns without running the statement. */
  columnsOf(sql: string): Promise<readonly string[]>
  /** Stops what runs, between two pieces of 2048 rows; what still waits for a thread does not notice. */
  interrupt(): void
  /** Rows are kept back until `close`; cleared, nothing of them is ever written. */
  appendTo(schema: string, table: string, columns: readonly DuckColumn[]): Promise<DuckAppender>
}

export type DuckAppender = {
  append(rows: readonly DuckRow[]): void
  close(): void
  clear(): void
}

export type DuckDatabase = Disposable & { connect(): Promise<DuckConnection> }

/** The name the engine gives to the catalogue of a file: its name up to the first dot. */
export function catalogueOf(path: string): string {
  return path === ':memory:' ? 'memory' : (basename(path).split('.')[0] as string)
}

/** What one chunk of the engine holds; larger ones are refused. */
const CHUNK_ROWS = 2048

/** Opens the file, or memory with `:memory:`. Settings are DuckDB's own names. */
export async function openDuckDatabase(
  path: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<DuckDatabase> {
  const instance = await DuckDBInstance.create(path, { ...settings })
  return {
    connect: async () => wrapConnection(await instance.connect()),
    [Symbol.dispose]: () => instance.closeSync(),
  }
}

function wrapConnection(connection: DuckDBConnection): DuckConnection {
  return {
    async run(sql, params) {
      // Always whole, never as a stream: a stream that fails half-way ends like one that is finished.
      return wrapAnswer(params === undefined ? await connection.run(sql) : await connection.run(sql, { ...params }))
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
    async appendTo(schema, table, columns) {
      return wrapAppender(await connection.createAppender(table, schema), columns)
    },
    [Symbol.dispose]: () => connection.disconnectSync(),
  }
}

function wrapAnswer(result: DuckDBMaterializedResult): DuckAnswer {
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

function wrapAppender(appender: DuckDBAppender, columns: readonly DuckColumn[]): DuckAppender {
  const types = columns.map(({ kind }) => TYPES[kind])
  const convert = columns.map(({ kind }) => CONVERT[kind])
  return {
    append(rows) {
      for (let from = 0; from < rows.length; from += CHUNK_ROWS) {
        const piece = rows.slice(from, from + CHUNK_ROWS)
        const chunk = DuckDBDataChunk.create(types, piece.length)
        convert.forEach((toEngine, at) => {
          chunk.setColumnValues(
            at,
            piece.map((row) => toEngine(row[at])),
          )
        })
        appender.appendDataChunk(chunk)
      }
    },
    close: () => appender.closeSync(),
    clear: () => appender.clear(),
  }
}

const TYPES: Readonly<Record<DuckKind, DuckDBType>> = {
  u64: UBIGINT,
  u32: UINTEGER,
  u16: USMALLINT,
  u8: UTINYINT,
  i64: BIGINT,
  i16: SMALLINT,
  bool: BOOLEAN,
  time: TIMESTAMP_S,
  text: VARCHAR,
  texts: LIST(VARCHAR),
}

type ToEngine = (value: DuckRow[number] | undefined) => DuckDBValue

const same: ToEngine = (value) => value as DuckDBValue
const whole: ToEngine = (value) => BigInt(value as number | bigint)
const CONVERT: Readonly<Record<DuckKind, ToEngine>> = {
  u64: whole,
  i64: whole,
  u32: same,
  u16: same,
  u8: same,
  i16: same,
  bool: same,
  text: same,
  texts: (value) => listValue(value as readonly string[]),
  time: (value) => new DuckDBTimestampSecondsValue(BigInt(value as number)),
}
