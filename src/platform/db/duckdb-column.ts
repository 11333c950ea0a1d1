import {
  type DuckDBArrayType,
  type DuckDBDataChunk,
  type DuckDBDecimalType,
  type DuckDBEnumType,
  type DuckDBListType,
  type DuckDBMapType,
  type DuckDBStructType,
  type DuckDBType,
  DuckDBTypeId,
} from '@duckdb/node-api'
import engine, { type DataChunk, type Vector } from '@duckdb/node-bindings'

/** A type of the engine. `name` is the engine's name of the whole type, such as `UBIGINT` or `VARCHAR[]`. */
export type DuckType =
  | { readonly kind: 'fixed'; readonly name: string; readonly width: number }
  | {
      readonly kind: 'decimal'
      readonly name: string
      readonly width: number
      readonly scale: number
      readonly digits: number
    }
  | { readonly kind: 'text'; readonly name: string }
  /** An enum: `width` bytes with the index of the word. */
  | { readonly kind: 'word'; readonly name: string; readonly width: number; readonly words: readonly string[] }
  | { readonly kind: 'list'; readonly name: string; readonly items: DuckType; readonly fixedLength: number | undefined }
  | { readonly kind: 'map'; readonly name: string; readonly key: DuckType; readonly value: DuckType }
  | {
      readonly kind: 'struct'
      readonly name: string
      readonly fields: readonly (readonly [name: string, type: DuckType])[]
    }
  /** A type whose memory layout is not read here; its values are read as the library gives them. */
  | { readonly kind: 'other'; readonly name: string }

/** The values of one column of a chunk, in the engine's memory. Valid while the chunk is referenced. */
export type DuckColumnValues = {
  /** Whether any value may be NULL. */
  readonly mayHaveNulls: boolean
  isNull(at: number): boolean
  /** Fixed, decimal and word types: the values in the engine's layout, little-endian. */
  readonly bytes: Uint8Array
  /** Text types. */
  text(at: number): Uint8Array
  /** Lists and maps: where the items of a row are. */
  start(at: number): number
  length(at: number): number
  /** The items of lists; the structs of keys and values of maps. */
  readonly items: DuckColumnValues
  field(at: number): DuckColumnValues
  /** The value as the library gives it. */
  value(at: number): unknown
}

const WIDTHS: Readonly<Partial<Record<DuckDBTypeId, number>>> = {
  [DuckDBTypeId.BOOLEAN]: 1,
  [DuckDBTypeId.TINYINT]: 1,
  [DuckDBTypeId.SMALLINT]: 2,
  [DuckDBTypeId.INTEGER]: 4,
  [DuckDBTypeId.BIGINT]: 8,
  [DuckDBTypeId.HUGEINT]: 16,
  [DuckDBTypeId.UTINYINT]: 1,
  [DuckDBTypeId.USMALLINT]: 2,
  [DuckDBTypeId.UINTEGER]: 4,
  [DuckDBTypeId.UBIGINT]: 8,
  [DuckDBTypeId.UHUGEINT]: 16,
  [DuckDBTypeId.FLOAT]: 4,
  [DuckDBTypeId.DOUBLE]: 8,
  [DuckDBTypeId.DATE]: 4,
  [DuckDBTypeId.TIMESTAMP]: 8,
  [DuckDBTypeId.TIMESTAMP_S]: 8,
  [DuckDBTypeId.TIMESTAMP_MS]: 8,
  [DuckDBTypeId.TIMESTAMP_NS]: 8,
  [DuckDBTypeId.TIMESTAMP_TZ]: 8,
  [DuckDBTypeId.UUID]: 16,
}

export function duckTypeOf(type: DuckDBType): DuckType {
  const name = String(type)
  switch (type.typeId) {
    case DuckDBTypeId.VARCHAR:
    case DuckDBTypeId.BLOB:
      return { kind: 'text', name }
    case DuckDBTypeId.DECIMAL: {
      const { width: digits, scale } = type as DuckDBDecimalType
      return { kind: 'decimal', name, scale, digits, width: digits <= 4 ? 2 : digits <= 9 ? 4 : digits <= 18 ? 8 : 16 }
    }
    case DuckDBTypeId.ENUM: {
      const { values } = type as DuckDBEnumType
      return { kind: 'word', name, words: values, width: values.length <= 0xff ? 1 : values.length <= 0xffff ? 2 : 4 }
    }
    case DuckDBTypeId.LIST:
      return { kind: 'list', name, items: duckTypeOf((type as DuckDBListType).valueType), fixedLength: undefined }
    case DuckDBTypeId.ARRAY: {
      const { valueType, length } = type as DuckDBArrayType
      return { kind: 'list', name, items: duckTypeOf(valueType), fixedLength: length }
    }
    case DuckDBTypeId.MAP: {
      const { keyType, valueType } = type as DuckDBMapType
      return { kind: 'map', name, key: duckTypeOf(keyType), value: duckTypeOf(valueType) }
    }
    case DuckDBTypeId.STRUCT: {
      const { entryNames, entryTypes } = type as DuckDBStructType
      const fields = entryNames.map((field, at) => [field, duckTypeOf(entryTypes[at] as DuckDBType)] as const)
      return { kind: 'struct', name, fields }
    }
    default: {
      const width = WIDTHS[type.typeId]
      return width === undefined ? { kind: 'other', name } : { kind: 'fixed', name, width }
    }
  }
}

/** The values of column `at`. */
export function columnOf(chunk: DuckDBDataChunk, at: number, type: DuckType): DuckColumnValues {
  // The library's wrapper holds the handle that the engine's own calls take.
  const { chunk: handle } = chunk as unknown as { readonly chunk: DataChunk }
  const vector = engine.data_chunk_get_vector(handle, at)
  return valuesOf(vector, chunk.rowCount, type, (row) => chunk.getColumnVector(at).getItem(row))
}

const NONE = new Uint8Array()
/** `duckdb_string_t` of duckdb.h: the length, then up to twelve bytes of text, or the first four and a pointer. */
const STRING_BYTES = 16
const INLINE_BYTES = 12
const ENTRY_WORDS = 4

const NO_VALUES: DuckColumnValues = {
  mayHaveNulls: true,
  isNull: () => true,
  bytes: NONE,
  text: () => NONE,
  start: () => 0,
  length: () => 0,
  get items() {
    return NO_VALUES
  },
  field: () => NO_VALUES,
  value: () => null,
}

/** `value` reads a value as the library gives it; there is no such way for values inside of lists and structs. */
function valuesOf(vector: Vector, count: number, type: DuckType, value: (at: number) => unknown): DuckColumnValues {
  const isNull = nullsOf(vector, count)
  const values = { ...NO_VALUES, mayHaveNulls: isNull !== undefined, isNull: isNull ?? (() => false), value }
  switch (type.kind) {
    case 'fixed':
    case 'decimal':
    case 'word':
      return { ...values, bytes: engine.vector_get_data(vector, count * type.width) }
    case 'text':
      return { ...values, text: textsOf(engine.vector_get_data(vector, count * STRING_BYTES)) }
    case 'list':
      return { ...values, ...listsOf(vector, count, type) }
    case 'map':
      return { ...values, ...listsOf(vector, count, { items: entryType(type), fixedLength: undefined }) }
    case 'struct': {
      const fields = type.fields.map(([, field], at) =>
        valuesOf(engine.struct_vector_get_child(vector, at), count, field, NO_VALUES.value),
      )
      return { ...values, field: (at) => fields[at] ?? NO_VALUES }
    }
    case 'other':
      return values
  }
}

/** Undefined when no value is NULL. The engine has one bit for each value, 0 for NULL. */
function nullsOf(vector: Vector, count: number): ((at: number) => boolean) | undefined {
  const mask = engine.vector_get_validity(vector, Math.ceil(count / 64) * 8) as Uint8Array | null
  return mask === null ? undefined : (at) => (((mask[at >> 3] as number) >> (at & 7)) & 1) === 0
}

function textsOf(data: Uint8Array): (at: number) => Uint8Array {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const buffer = data.buffer as ArrayBuffer
  return (at) => {
    const offset = at * STRING_BYTES
    const bytes = view.getUint32(offset, true)
    if (bytes <= INLINE_BYTES) return data.subarray(offset + 4, offset + 4 + bytes)
    return engine.get_data_from_pointer(buffer, data.byteOffset + offset + 8, bytes)
  }
}

function listsOf(
  vector: Vector,
  count: number,
  { items, fixedLength }: { readonly items: DuckType; readonly fixedLength: number | undefined },
): Pick<DuckColumnValues, 'start' | 'length' | 'items'> {
  if (fixedLength !== undefined) {
    const child = engine.array_vector_get_child(vector)
    return {
      start: (at) => at * fixedLength,
      length: () => fixedLength,
      items: valuesOf(child, count * fixedLength, items, NO_VALUES.value),
    }
  }
  const data = engine.vector_get_data(vector, count * ENTRY_WORDS * 4)
  // Offset and length have 64 bits each; a chunk never has 2^32 items.
  const words = new Uint32Array(data.buffer, data.byteOffset, count * ENTRY_WORDS)
  const size = engine.list_vector_get_size(vector)
  return {
    start: (at) => words[at * ENTRY_WORDS] as number,
    length: (at) => words[at * ENTRY_WORDS + 2] as number,
    items: valuesOf(engine.list_vector_get_child(vector), size, items, NO_VALUES.value),
  }
}

/** The engine stores a map as a list of structs. */
function entryType({ name, key, value }: Extract<DuckType, { kind: 'map' }>): DuckType {
  return {
    kind: 'struct',
    name,
    fields: [
      ['key', key],
      ['value', value],
    ],
  }
}
