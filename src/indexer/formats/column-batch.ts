import { ByteWriter } from './byte-writer.ts'
import type { ValueType } from './value-type.ts'

/**
 * The values of a column for some rows, in ClickHouse's memory layout. The binary formats are written from it.
 * A NULL has a zero, an empty text or an empty list in its place.
 */
export type ColumnBatch = {
  readonly type: ValueType
  count: number
  /** One byte for each value, 1 for NULL; empty for a type that is not nullable. */
  readonly nulls: ByteWriter
  /** Values of fixed width, or the bytes of all texts. */
  readonly values: ByteWriter
  /** Texts and lists: the end of each value, among the bytes of texts or the items of lists. */
  readonly ends: number[]
  /** The items of a list; keys and values of a map; the fields of a tuple. */
  readonly parts: readonly ColumnBatch[]
}

export function createBatch(type: ValueType): ColumnBatch {
  return {
    type,
    count: 0,
    nulls: new ByteWriter(64),
    values: new ByteWriter(64),
    ends: [],
    parts: partTypes(type).map(createBatch),
  }
}

function partTypes(type: ValueType): readonly ValueType[] {
  switch (type.kind) {
    case 'list':
      return [type.items]
    case 'map':
      return [type.key, type.value]
    case 'tuple':
      return type.fields.map((field) => field.type)
    default:
      return []
  }
}

export function clearBatch(batch: ColumnBatch): void {
  batch.count = 0
  batch.nulls.clear()
  batch.values.clear()
  batch.ends.length = 0
  for (const part of batch.parts) clearBatch(part)
}

/** Memory that the values take. */
export function batchBytes(batch: ColumnBatch): number {
  const own = batch.nulls.length + batch.values.length + 8 * batch.ends.length
  return batch.parts.reduce((sum, part) => sum + batchBytes(part), own)
}

/** Where value `at` of texts and lists begins. */
export function startOf({ ends }: ColumnBatch, at: number): number {
  return at === 0 ? 0 : (ends[at - 1] as number)
}
