import type { DuckColumnValues, DuckType } from '../../platform/db/duckdb-column.ts'
import type { ColumnBatch } from './column-batch.ts'
import { fixedLayout } from './fixed-layout.ts'
import type { ValueType } from './value-type.ts'

/** Appends the values `from` to `to` of a column to a batch. Yields between short steps, so that the caller can pause. */
export type FillBatch = (batch: ColumnBatch, values: DuckColumnValues, from: number, to: number) => Generator<void>

/** Values between two yields: some hundred microseconds. */
const STEP = 512

/** `type` is one that `isWritableAs` accepts for the engine's type. */
export function fillerOf(engine: DuckType, type: ValueType): FillBatch {
  switch (type.kind) {
    case 'list':
      return engine.kind === 'list'
        ? fillLists([fillerOf(engine.items, type.items)], ({ items }) => [items])
        : fillTexts(engine)
    case 'map': {
      if (engine.kind !== 'map') return fillTexts(engine)
      const fills = [fillerOf(engine.key, type.key), fillerOf(engine.value, type.value)]
      return fillLists(fills, ({ items }) => [items.field(0), items.field(1)])
    }
    case 'tuple':
      return engine.kind === 'struct'
        ? fillTuples(engine.fields.map(([, of], at) => fillerOf(of, fieldType(type, at))))
        : fillTexts(engine)
    case 'text':
      return fillTexts(engine)
    default:
      return fillFixed(engine, type)
  }
}

/** Whether values of the engine's type can be written as `type`. Everything can be written as text. */
export function isWritableAs(engine: DuckType, type: ValueType): boolean {
  switch (type.kind) {
    case 'text':
      return true
    case 'nothing':
      return engine.kind === 'fixed'
    case 'list':
      return engine.kind === 'list' && isWritableAs(engine.items, type.items)
    case 'map':
      return engine.kind === 'map' && isWritableAs(engine.key, type.key) && isWritableAs(engine.value, type.value)
    case 'tuple':
      return (
        engine.kind === 'struct' &&
        engine.fields.length === type.fields.length &&
        engine.fields.every(([, of], at) => isWritableAs(of, fieldType(type, at)))
      )
    default:
      return fixedLayout(engine, type) !== undefined
  }
}

function fieldType({ fields }: Extract<ValueType, { kind: 'tuple' }>, at: number): ValueType {
  const field = fields[at]
  if (field === undefined) throw new Error('the tuple has fewer fields than the struct')
  return field.type
}

function fillFixed(engine: DuckType, type: ValueType): FillBatch {
  const width = 'width' in engine ? engine.width : 0
  const written = 'width' in type ? type.width : 0
  const layout = type.kind === 'nothing' ? undefined : fixedLayout(engine, type)
  return function* (batch, values, from, to) {
    const { bytes } = values
    const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    for (let start = from; start < to; start += STEP) {
      const end = Math.min(start + STEP, to)
      const hasNulls = writeNulls(batch, values, start, end)
      if (layout === 'copy' && !hasNulls) batch.values.bytes(source.subarray(start * width, end * width))
      else
        for (let at = start; at < end; at++) {
          if (layout === undefined || (hasNulls && values.isNull(at))) batch.values.fill(0, written)
          else if (layout === 'copy') batch.values.bytes(source.subarray(at * width, (at + 1) * width))
          else layout(source, at, batch.values)
        }
      batch.count += end - start
      yield
    }
  }
}

function fillTexts(engine: DuckType): FillBatch {
  const read = textReader(engine)
  return function* (batch, values, from, to) {
    for (let start = from; start < to; start += STEP) {
      const end = Math.min(start + STEP, to)
      const hasNulls = writeNulls(batch, values, start, end)
      for (let at = start; at < end; at++) {
        if (!hasNulls || !values.isNull(at)) batch.values.bytes(read(values, at))
        batch.ends.push(batch.values.length)
      }
      batch.count += end - start
      yield
    }
  }
}

function textReader(engine: DuckType): (values: DuckColumnValues, at: number) => Uint8Array {
  if (engine.kind === 'text') return (values, at) => values.text(at)
  if (engine.kind !== 'word') return (values, at) => Buffer.from(String(values.value(at)))
  const { width } = engine
  const words = engine.words.map((word) => Buffer.from(word))
  return ({ bytes }, at) => {
    let index = 0
    for (let byte = width - 1; byte >= 0; byte--) index = index * 256 + (bytes[at * width + byte] as number)
    return words[index] ?? Buffer.alloc(0)
  }
}

/** A list or map that is NULL is written as an empty one, as ClickHouse has no others. */
function fillLists(
  fills: readonly FillBatch[],
  partsOf: (values: DuckColumnValues) => readonly DuckColumnValues[],
): FillBatch {
  return function* (batch, values, from, to) {
    const sources = partsOf(values)
    function* append(start: number, end: number): Generator<void> {
      for (const [part, fill] of fills.entries())
        yield* fill(batch.parts[part] as ColumnBatch, sources[part] as DuckColumnValues, start, end)
    }
    // The items of consecutive rows usually follow each other, so they are appended together.
    let runStart = 0
    let runEnd = 0
    let end = batch.ends.at(-1) ?? 0
    for (let at = from; at < to; at++) {
      const length = values.mayHaveNulls && values.isNull(at) ? 0 : values.length(at)
      const start = values.start(at)
      if (length > 0 && start !== runEnd) {
        yield* append(runStart, runEnd)
        runStart = start
        runEnd = start
      }
      runEnd += length
      end += length
      batch.ends.push(end)
      if ((at - from) % STEP === STEP - 1) yield
    }
    yield* append(runStart, runEnd)
    batch.count += to - from
  }
}

function fillTuples(fills: readonly FillBatch[]): FillBatch {
  return function* (batch, values, from, to) {
    for (const [at, fill] of fills.entries()) {
      const field = values.field(at)
      // The fields of a tuple that is NULL are NULL, whatever the engine has in their place.
      const isNull = (row: number): boolean => values.isNull(row) || field.isNull(row)
      const source = values.mayHaveNulls ? { ...field, mayHaveNulls: true, isNull } : field
      yield* fill(batch.parts[at] as ColumnBatch, source, from, to)
    }
    batch.count += to - from
  }
}

/** Returns whether there is any NULL. In a column that is not Nullable it becomes the default of the type, as ClickHouse stores it. */
function writeNulls({ type, nulls }: ColumnBatch, values: DuckColumnValues, from: number, to: number): boolean {
  let hasNulls = false
  if (values.mayHaveNulls) for (let at = from; at < to && !hasNulls; at++) hasNulls = values.isNull(at)
  if (!type.isNullable) return hasNulls
  if (hasNulls) for (let at = from; at < to; at++) nulls.u8(values.isNull(at) ? 1 : 0)
  else nulls.fill(0, to - from)
  return hasNulls
}
