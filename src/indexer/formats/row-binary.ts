import { ByteWriter } from './byte-writer.ts'
import { ITEMS_PER_STEP, leafCount } from './cell-text.ts'
import { type ColumnBatch, startOf } from './column-batch.ts'
import { type TypedColumn, typeName } from './value-type.ts'
import type { BatchFormat, Piece } from './writer.ts'

export type RowBinaryHead = 'none' | 'names' | 'names-and-types'

/** Bytes of output between two pieces. */
const PIECE_BYTES = 64 * 1024
const STEP = 64

/** ClickHouse's RowBinary: the values of a row one after the other, without separators. */
export function rowBinary(columns: readonly TypedColumn[], head: RowBinaryHead): BatchFormat {
  const out = new ByteWriter(PIECE_BYTES)
  return {
    *head() {
      if (head === 'none') return
      out.varint(columns.length)
      for (const { name } of columns) out.text(name)
      if (head === 'names-and-types') for (const { type } of columns) out.text(typeName(type))
      yield out.take()
    },
    *batch(batches, rowCount) {
      const writers = batches.map((batch) => cellWriter(batch, out))
      const lists = batches.filter(({ parts }) => parts.length > 0)
      for (let at = 0; at < rowCount; at++) {
        if (lists.some((batch) => leafCount(batch, at, at + 1) > ITEMS_PER_STEP))
          for (const batch of batches) yield* writeLongCell(batch, out, at)
        else for (const write of writers) write(at)
        if (out.length >= PIECE_BYTES) yield out.take()
        else if (at % STEP === 0) yield undefined
      }
      if (out.length > 0) yield out.take()
    },
  }
}

type WriteCell = (at: number) => void

/** The same bytes as those of `cellWriter`, with pauses between the items of a long list. */
function* writeLongCell(batch: ColumnBatch, out: ByteWriter, at: number): Generator<Piece> {
  const { type, parts } = batch
  if ((type.kind !== 'list' && type.kind !== 'map') || leafCount(batch, at, at + 1) <= ITEMS_PER_STEP)
    return cellWriter(batch, out)(at)
  const writers = parts.map((part) => cellWriter(part, out))
  const start = startOf(batch, at)
  const end = batch.ends[at] as number
  out.varint(end - start)
  for (let item = start; item < end; item++) {
    for (const [index, part] of parts.entries()) {
      if (leafCount(part, item, item + 1) > ITEMS_PER_STEP) yield* writeLongCell(part, out, item)
      else writers[index]?.(item)
    }
    if (out.length >= PIECE_BYTES) yield out.take()
    else if (item % ITEMS_PER_STEP === 0) yield undefined
  }
}

function cellWriter(batch: ColumnBatch, out: ByteWriter): WriteCell {
  const write = valueWriter(batch, out)
  if (!batch.type.isNullable) return write
  const nulls = batch.nulls.view()
  return (at) => {
    const isNull = nulls[at] === 1
    out.u8(isNull ? 1 : 0)
    if (!isNull) write(at)
  }
}

function valueWriter(batch: ColumnBatch, out: ByteWriter): WriteCell {
  const { type, ends } = batch
  const values = batch.values.view()
  const parts = batch.parts.map((part) => cellWriter(part, out))
  switch (type.kind) {
    case 'text':
      return (at) => {
        const start = startOf(batch, at)
        const end = ends[at] as number
        out.varint(end - start)
        if (end - start > 100) out.bytes(values.subarray(start, end))
        else out.copy(values, start, end)
      }
    case 'list':
    case 'map':
      return (at) => {
        const start = startOf(batch, at)
        const end = ends[at] as number
        out.varint(end - start)
        for (let item = start; item < end; item++) for (const write of parts) write(item)
      }
    case 'tuple':
      return (at) => {
        for (const write of parts) write(at)
      }
    default: {
      const { width } = type
      return (at) => out.copy(values, at * width, (at + 1) * width)
    }
  }
}
