import { ByteWriter } from '../byte-writer.ts'
import { type ColumnBatch, startOf } from '../column-batch.ts'
import { bigEndian, bitsOf, timeUnit, widened } from '../widen.ts'
import type { Piece } from '../writer.ts'
import { type Leaf, PARQUET_TIMES } from './parquet-schema.ts'

const STEP = 512

/**
 * Writes the repetition and definition levels of a leaf, and returns how many it has. A leaf that is neither nullable nor in a list has none, and as
 * many values as there are rows.
 */
export function* levelsOf({ chain }: Leaf, rowCount: number, out: ByteWriter): Generator<Piece, number> {
  const repetitionMax = chain.filter(isRepeated).length
  const definitionMax = repetitionMax + (chain.at(-1)?.type.isNullable ? 1 : 0)
  if (definitionMax === 0) return rowCount
  const repetitions = new LevelRuns()
  const definitions = new LevelRuns()
  let count = 0

  function add(repetition: number, definition: number): void {
    repetitions.add(repetition)
    definitions.add(definition)
    count++
  }

  function* visit(depth: number, at: number, repetition: number, definition: number): Generator<Piece> {
    const batch = chain[depth] as ColumnBatch
    if (depth === chain.length - 1) {
      const isDefined = batch.type.isNullable && batch.nulls.byteAt(at) === 0
      add(repetition, definition + (isDefined ? 1 : 0))
      if (count % STEP === 0) yield undefined
    } else if (!isRepeated(batch)) yield* visit(depth + 1, at, repetition, definition)
    else {
      const start = startOf(batch, at)
      const end = batch.ends[at] as number
      const level = 1 + chain.slice(0, depth).filter(isRepeated).length
      if (start === end) add(repetition, definition)
      for (let item = start; item < end; item++)
        yield* visit(depth + 1, item, item === start ? repetition : level, definition + 1)
    }
  }

  const [only] = chain.length === 1 ? chain : []
  for (let row = 0; row < rowCount; row++) {
    if (row % STEP === 0) yield undefined
    // Most columns are not nested.
    if (only === undefined) yield* visit(0, row, 0, 0)
    else add(0, only.nulls.byteAt(row) === 0 ? 1 : 0)
  }
  if (repetitionMax > 0) repetitions.write(out, repetitionMax)
  definitions.write(out, definitionMax)
  return count
}

function isRepeated({ type }: ColumnBatch): boolean {
  return type.kind === 'list' || type.kind === 'map'
}

/** Levels as runs of equal values: the RLE half of Parquet's RLE and bit-packing hybrid. */
class LevelRuns {
  readonly #out = new ByteWriter(256)
  #value = 0
  #count = 0

  add(value: number): void {
    if (value !== this.#value) this.#flush()
    this.#value = value
    this.#count++
  }

  write(out: ByteWriter, levelMax: number): void {
    // A value takes one byte: a level above 255 would need a type with as many nested lists.
    if (levelMax > 255) throw new Error('a type is nested too deeply')
    this.#flush()
    out.u32(this.#out.length)
    out.bytes(this.#out.view())
  }

  #flush(): void {
    if (this.#count === 0) return
    this.#out.varint(this.#count * 2)
    this.#out.u8(this.#value)
    this.#count = 0
  }
}

/** Writes the values that are not NULL in Parquet's PLAIN encoding. */
export function* writeValues(batch: ColumnBatch, out: ByteWriter): Generator<Piece> {
  const { type, count } = batch
  const nulls = batch.type.isNullable ? batch.nulls.view() : undefined
  const values = batch.values.view()
  if (type.kind === 'text' || type.kind === 'nothing') {
    for (let at = 0; at < count; at++) {
      if (at % STEP === 0) yield undefined
      if (nulls?.[at] === 1) continue
      const start = startOf(batch, at)
      const end = batch.ends[at] as number
      out.u32(end - start)
      out.bytes(values.subarray(start, end))
    }
    return
  }
  if (type.kind === 'bool') return out.bytes(bitsOf(...presentBytes(values, nulls, count), 1))
  const { bytes, width } = yield* plainNumbers(batch)
  if (nulls === undefined) return out.bytes(bytes)
  for (let at = 0; at < count; at++) {
    if (at % STEP === 0) yield undefined
    if (nulls[at] === 0) out.copy(bytes, at * width, (at + 1) * width)
  }
}

function presentBytes(values: Uint8Array, nulls: Uint8Array | undefined, count: number): [Uint8Array, number] {
  const present = nulls === undefined ? values : values.filter((_, at) => nulls[at] === 0)
  return [present, nulls === undefined ? count : present.length]
}

type Plain = { readonly bytes: Uint8Array; readonly width: number }

function* plainNumbers(batch: ColumnBatch): Generator<undefined, Plain> {
  const { type } = batch
  const values = batch.values.view()
  switch (type.kind) {
    case 'int':
      if (type.width >= 4) return { bytes: values, width: type.width }
      return { bytes: (yield* widened(batch, { width: 4, isSigned: type.isSigned })).view(), width: 4 }
    case 'date':
      if (type.width === 4) return { bytes: values, width: 4 }
      return { bytes: (yield* widened(batch, { width: 4, isSigned: false })).view(), width: 4 }
    case 'time': {
      const { times } = timeUnit(type.scale, PARQUET_TIMES)
      if (times === 1n && type.width === 8) return { bytes: values, width: 8 }
      return { bytes: (yield* widened(batch, { width: 8, isSigned: type.width === 8, times })).view(), width: 8 }
    }
    case 'decimal':
      return type.width === 16 ? { bytes: bigEndian(values, 16), width: 16 } : { bytes: values, width: type.width }
    case 'uuid':
      return { bytes: bigEndian(values, 8), width: 16 }
    default:
      return { bytes: values, width: 'width' in type ? type.width : 0 }
  }
}
