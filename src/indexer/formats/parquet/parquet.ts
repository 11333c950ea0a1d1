import { ByteWriter } from '../byte-writer.ts'
import { batchBytes, type ColumnBatch } from '../column-batch.ts'
import type { TypedColumn } from '../value-type.ts'
import type { BatchFormat, Piece } from '../writer.ts'
import { type Leaf, parquetSchema } from './parquet-schema.ts'
import { levelsOf, writeValues } from './parquet-values.ts'
import { binary, i32, i64, list, struct, type ThriftValue } from './thrift.ts'

const MAGIC = 'PAR1'
const PLAIN = 0
const RLE = 3
const UNCOMPRESSED = 0
const DATA_PAGE = 0
/** Levels of a page, beside its values. */
const PAGE_EXTRA_BYTES = 16 * 1024

/**
 * Apache Parquet: each batch is a row group, each column of it one page, without compression and dictionaries. Format:
 * https://github.com/apache/parquet-format
 */
export function parquet(columns: readonly TypedColumn[]): BatchFormat {
  const { elements, leavesOf } = parquetSchema(columns)
  const groups: ThriftValue[] = []
  let offset = 0
  let rows = 0

  function counted(bytes: Uint8Array): Uint8Array {
    offset += bytes.length
    return bytes
  }

  function* writePage(leaf: Leaf, rowCount: number, chunks: ThriftValue[]): Generator<Piece> {
    // Large enough from the start: a buffer that grows leaves its smaller ones to the garbage collector.
    const body = new ByteWriter(batchBytes(leaf.batch) + PAGE_EXTRA_BYTES)
    const count = yield* levelsOf(leaf, rowCount, body)
    yield* writeValues(leaf.batch, body)
    const header = new ByteWriter(64)
    pageHeader(body.length, count).write(header)
    const bytes = header.length + body.length
    const start = offset
    yield counted(header.take())
    yield counted(body.view())
    chunks.push(columnChunk(leaf, { count, bytes, start }))
  }

  return {
    *head() {
      yield counted(Buffer.from(MAGIC))
    },
    *batch(batches: readonly ColumnBatch[], rowCount) {
      const start = offset
      const chunks: ThriftValue[] = []
      for (const leaf of leavesOf(batches)) yield* writePage(leaf, rowCount, chunks)
      rows += rowCount
      groups.push(
        struct([
          [1, list(chunks)],
          [2, i64(offset - start)],
          [3, i64(rowCount)],
        ]),
      )
    },
    *tail() {
      const footer = new ByteWriter()
      struct([
        [1, i32(1)],
        [2, list(elements)],
        [3, i64(rows)],
        [4, list(groups)],
        [6, binary('sluice')],
      ]).write(footer)
      const { length } = footer
      footer.u32(length)
      footer.bytes(Buffer.from(MAGIC))
      yield footer.take()
    },
  }
}

function pageHeader(bytes: number, count: number): ThriftValue {
  const page = struct([
    [1, i32(count)],
    [2, i32(PLAIN)],
    [3, i32(RLE)],
    [4, i32(RLE)],
  ])
  return struct([
    [1, i32(DATA_PAGE)],
    [2, i32(bytes)],
    [3, i32(bytes)],
    [5, page],
  ])
}

function columnChunk(
  { physical, path }: Leaf,
  { count, bytes, start }: { readonly count: number; readonly bytes: number; readonly start: number },
): ThriftValue {
  const meta = struct([
    [1, i32(physical)],
    [2, list([i32(PLAIN), i32(RLE)])],
    [3, list(path.map(binary))],
    [4, i32(UNCOMPRESSED)],
    [5, i64(count)],
    [6, i64(bytes)],
    [7, i64(bytes)],
    [9, i64(start)],
  ])
  return struct([
    [2, i64(start)],
    [3, meta],
  ])
}
