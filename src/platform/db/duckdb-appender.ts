import {
  BIGINT,
  BOOLEAN,
  type DuckDBAppender,
  DuckDBDataChunk,
  type DuckDBType,
  LIST,
  SMALLINT,
  TIMESTAMP_S,
  UBIGINT,
  UINTEGER,
  USMALLINT,
  UTINYINT,
  VARCHAR,
} from '@duckdb/node-api'
import engine, { type DataChunk, type Vector } from '@duckdb/node-bindings'
import type { DuckTexts } from './duckdb-texts.ts'

/** A column of rows: its kind, and the values of all rows. A `time` is seconds since 1970. */
export type DuckColumn =
  | { readonly kind: 'u64' | 'i64'; values(): BigUint64Array }
  | { readonly kind: 'u32' | 'u16' | 'u8' | 'i16' | 'bool' | 'time'; values(): Float64Array }
  /** Indexes of texts. */
  | { readonly kind: 'text'; values(): Uint32Array }
  /** Lists: the end of each row's list among all items. */
  | { readonly kind: 'texts'; values(): { readonly ends: Uint32Array; readonly items: Uint32Array } }

export type DuckAppender = {
  append(columns: readonly DuckColumn[], rowCount: number, texts: DuckTexts): void
  /** Writes what was appended; more may be appended then. */
  flush(): void
  clear(): void
}

/** Rows of one DuckDB chunk; larger ones are refused. */
const CHUNK_ROWS = 2048

/** The chunk for columns of these kinds, which is filled and emptied before it is requested again. */
type AppendChunks = (columns: readonly Pick<DuckColumn, 'kind'>[]) => DataChunk

/**
 * Holds one chunk for each table that is appended to. The library frees a chunk and its types when the garbage collector finds them, and the collector
 * does not know that they take some 16 KiB for each column: with one for each append, a store at rest held hundreds of them.
 */
export function createAppendChunks(): AppendChunks {
  const chunks = new Map<string, DataChunk>()
  return (columns) => {
    const key = columns.map(({ kind }) => kind).join()
    const held = chunks.get(key)
    if (held !== undefined) return held
    const chunk = engine.create_data_chunk(columns.map(({ kind }) => TYPES[kind].toLogicalType().logical_type))
    chunks.set(key, chunk)
    return chunk
  }
}

/**
 * Appends rows in DuckDB's memory layout, one vector for each column of a chunk: the library's one call per value costs several times what the
 * engine itself needs. The appender copies its input.
 */
export function wrapAppender(appender: DuckDBAppender, chunkFor: AppendChunks): DuckAppender {
  return {
    append(columns, rowCount, texts) {
      const chunk = chunkFor(columns)
      const fills = columns.map((column) => fillerOf(column, texts))
      for (let from = 0; from < rowCount; from += CHUNK_ROWS) {
        const to = Math.min(from + CHUNK_ROWS, rowCount)
        engine.data_chunk_reset(chunk)
        engine.data_chunk_set_size(chunk, to - from)
        fills.forEach((fill, at) => {
          fill(engine.data_chunk_get_vector(chunk, at), from, to)
        })
        appender.appendDataChunk(new DuckDBDataChunk(chunk))
      }
      engine.data_chunk_reset(chunk)
    },
    flush: () => appender.flushSync(),
    clear: () => appender.clear(),
  }
}

const TYPES: Readonly<Record<DuckColumn['kind'], DuckDBType>> = {
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

/** Writes the rows of a chunk into its column vector. */
type Fill = (vector: Vector, from: number, to: number) => void

const NARROW = {
  u32: (numbers: Float64Array) => new Uint32Array(numbers),
  u16: (numbers: Float64Array) => new Uint16Array(numbers),
  u8: (numbers: Float64Array) => new Uint8Array(numbers),
  i16: (numbers: Float64Array) => new Int16Array(numbers),
  bool: (numbers: Float64Array) => new Uint8Array(numbers),
  time: (numbers: Float64Array) => BigInt64Array.from(numbers, BigInt),
}

function fillerOf(column: DuckColumn, texts: DuckTexts): Fill {
  switch (column.kind) {
    case 'u64':
    case 'i64': {
      const values = column.values()
      return (vector, from, to) => copy(vector, values.subarray(from, to))
    }
    case 'text': {
      const values = column.values()
      return (vector, from, to) => copy(vector, texts.strings(values.subarray(from, to)))
    }
    case 'texts':
      return listFiller(column.values(), texts)
    default: {
      const values = column.values()
      const narrow = NARROW[column.kind]
      return (vector, from, to) => copy(vector, narrow(values.subarray(from, to)))
    }
  }
}

/** DuckDB's list entry: the offset among all items of the chunk and the count, both 64 bits wide. */
function listFiller({ ends, items }: { ends: Uint32Array; items: Uint32Array }, texts: DuckTexts): Fill {
  return (vector, from, to) => {
    const entries = new Uint32Array((to - from) * 4)
    const first = from === 0 ? 0 : (ends[from - 1] as number)
    let start = first
    for (let row = from, at = 0; row < to; row++, at += 4) {
      const end = ends[row] as number
      entries[at] = start - first
      entries[at + 2] = end - start
      start = end
    }
    copy(vector, entries)
    engine.list_vector_reserve(vector, start - first)
    engine.list_vector_set_size(vector, start - first)
    if (start > first) copy(engine.list_vector_get_child(vector), texts.strings(items.subarray(first, start)))
  }
}

function copy(vector: Vector, { buffer, byteOffset, byteLength }: ArrayBufferView): void {
  engine.copy_data_to_vector(vector, 0, buffer as ArrayBuffer, byteOffset, byteLength)
}
