import { ByteWriter } from './byte-writer.ts'
import { type ColumnBatch, startOf } from './column-batch.ts'
import { type TypedColumn, typeName } from './value-type.ts'
import type { BatchFormat, Piece } from './writer.ts'

const PIECE_BYTES = 64 * 1024
const STEP = 512

/** A revision of ClickHouse's own protocol, DBMS_MIN_REVISION_WITH_CUSTOM_SERIALIZATION: from it on a column states whether it is written in a special form. */
const CUSTOM_SERIALIZATION_REVISION = 54_454

/**
 * ClickHouse's Native: blocks of columns. LowCardinality columns are written as plain strings, which every reader converts. With a `revision`, that of
 * `client_protocol_version`, blocks are those of the protocol between servers and clients, which have a head of their own.
 */
export function native(
  columns: readonly TypedColumn[],
  { revision = 0 }: { readonly revision?: number } = {},
): BatchFormat {
  const out = new ByteWriter(PIECE_BYTES)
  const types = columns.map(({ type }) => typeName(type, { isPlain: true }))
  function* block(batches: readonly ColumnBatch[], rowCount: number): Generator<Piece> {
    if (revision > 0) writeBlockInfo(out)
    out.varint(columns.length)
    out.varint(rowCount)
    for (const [at, { name }] of columns.entries()) {
      out.text(name)
      out.text(types[at] as string)
      if (revision >= CUSTOM_SERIALIZATION_REVISION) out.u8(0)
      if (rowCount > 0) yield* writeColumn(batches[at] as ColumnBatch, out)
    }
    yield out.take()
  }
  return {
    // A block without rows has the names and types, for a result that has no rows.
    head: () => block([], 0),
    batch: block,
  }
}

/** Numbered fields up to a zero: 1, that the block has no overflows; 2, that it belongs to no bucket. */
function writeBlockInfo(out: ByteWriter): void {
  out.u8(1)
  out.u8(0)
  out.u8(2)
  out.i32(-1)
  out.u8(0)
}

function* writeColumn(batch: ColumnBatch, out: ByteWriter): Generator<Piece> {
  const { type, ends } = batch
  if (type.isNullable) out.bytes(batch.nulls.view())
  const values = batch.values.view()
  switch (type.kind) {
    case 'text':
      for (let at = 0; at < batch.count; at++) {
        const start = startOf(batch, at)
        const end = ends[at] as number
        out.varint(end - start)
        out.bytes(values.subarray(start, end))
        if (at % STEP === 0) yield pieceOf(out)
      }
      break
    case 'list':
    case 'map':
      for (let at = 0; at < batch.count; at++) {
        out.u64(ends[at] as number)
        if (at % STEP === 0) yield pieceOf(out)
      }
      for (const part of batch.parts) yield* writeColumn(part, out)
      break
    case 'tuple':
      for (const part of batch.parts) yield* writeColumn(part, out)
      break
    case 'nothing':
      out.fill(0x30, batch.count)
      break
    default:
      out.bytes(values)
      yield pieceOf(out)
  }
}

function pieceOf(out: ByteWriter): Piece {
  return out.length >= PIECE_BYTES ? out.take() : undefined
}
