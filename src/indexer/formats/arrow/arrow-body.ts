import { ByteWriter } from '../byte-writer.ts'
import type { ColumnBatch } from '../column-batch.ts'
import { bigEndian, bitsOf, timeUnit, widened } from '../widen.ts'
import { ARROW_TIMES } from './arrow-schema.ts'

/** The body of a record batch, with the FieldNodes (length, count of NULLs) and Buffers (offset, length) that describe it. */
export type ArrowBody = {
  readonly nodes: readonly number[]
  readonly buffers: readonly number[]
  readonly body: Buffer
}

const STEP = 4096

export function* arrowBody(batches: readonly ColumnBatch[]): Generator<undefined, ArrowBody> {
  const nodes: number[] = []
  const buffers: number[] = []
  const out = new ByteWriter()

  function add(bytes: Uint8Array): void {
    buffers.push(out.length, bytes.length)
    out.bytes(bytes)
    out.align(8)
  }

  function* offsets(ends: readonly number[]): Generator<undefined> {
    const bytes = new ByteWriter(4 * ends.length + 4)
    bytes.u32(0)
    for (const [at, end] of ends.entries()) {
      bytes.u32(end)
      if (at % STEP === 0) yield undefined
    }
    add(bytes.view())
  }

  function* column(batch: ColumnBatch): Generator<undefined> {
    const { type, count } = batch
    const nulls = type.isNullable ? batch.nulls.view() : undefined
    const nullCount = nulls?.reduce((sum, isNull) => sum + isNull, 0) ?? 0
    nodes.push(count, nullCount)
    // Without NULLs the bitmap may be left out.
    add(nullCount === 0 || nulls === undefined ? new Uint8Array() : bitsOf(nulls, count, 0))
    yield undefined
    switch (type.kind) {
      case 'text':
        yield* offsets(batch.ends)
        add(batch.values.view())
        return
      case 'nothing':
        yield* offsets(Array<number>(count).fill(0))
        add(new Uint8Array())
        return
      case 'list':
        yield* offsets(batch.ends)
        break
      case 'map':
        yield* offsets(batch.ends)
        // The struct of keys and values.
        nodes.push(batch.ends.at(-1) ?? 0, 0)
        add(new Uint8Array())
        break
      case 'tuple':
        break
      case 'bool':
        add(bitsOf(batch.values.view(), count, 1))
        return
      default:
        add(yield* numbers(batch))
        return
    }
    for (const part of batch.parts) yield* column(part)
  }

  for (const batch of batches) yield* column(batch)
  return { nodes, buffers, body: out.view() }
}

function* numbers(batch: ColumnBatch): Generator<undefined, Uint8Array> {
  const { type } = batch
  switch (type.kind) {
    case 'date':
      if (type.width === 2) return (yield* widened(batch, { width: 4, isSigned: false })).view()
      break
    case 'time': {
      const { times } = timeUnit(type.scale, ARROW_TIMES)
      if (times !== 1n || type.width === 4)
        return (yield* widened(batch, { width: 8, isSigned: type.width === 8, times })).view()
      break
    }
    case 'decimal':
      if (type.width < 16) return (yield* widened(batch, { width: 16, isSigned: true })).view()
      break
    case 'uuid':
      return bigEndian(batch.values.view(), 8)
    default:
  }
  return batch.values.view()
}
