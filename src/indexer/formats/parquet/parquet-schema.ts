import type { ColumnBatch } from '../column-batch.ts'
import type { TypedColumn, ValueType } from '../value-type.ts'
import { timeUnit } from '../widen.ts'
import { binary, byte, flag, i32, struct, type ThriftValue } from './thrift.ts'

/** A column of values in a Parquet file: a scalar column, or a scalar part of a list, map or tuple. */
export type Leaf = {
  readonly batch: ColumnBatch
  readonly physical: number
  readonly path: readonly string[]
  /** Batches from the column down to this leaf. */
  readonly chain: readonly ColumnBatch[]
}

/** Physical types of parquet.thrift. */
const [BOOLEAN, INT32, INT64, FLOAT, DOUBLE, BYTE_ARRAY, FIXED] = [0, 1, 2, 4, 5, 6, 7] as const
const [REQUIRED, OPTIONAL, REPEATED] = [0, 1, 2] as const
/** Converted types, which older readers use. */
const [UTF8, MAP, LIST, DECIMAL, DATE, TIMESTAMP_MILLIS, TIMESTAMP_MICROS] = [0, 1, 3, 5, 6, 9, 10] as const
const UNSIGNED: Readonly<Record<number, number>> = { 1: 11, 2: 12, 4: 13, 8: 14 }
const SIGNED: Readonly<Record<number, number>> = { 1: 15, 2: 16, 4: 17, 8: 18 }
/** Fields of the union LogicalType. */
const LOGICAL = { string: 1, map: 2, list: 3, decimal: 5, date: 6, timestamp: 8, integer: 10, uuid: 14 }
/** Digits after the second of the units MILLIS, MICROS and NANOS. */
export const PARQUET_TIMES: readonly number[] = [3, 6, 9]

export function parquetSchema(columns: readonly TypedColumn[]): {
  readonly elements: readonly ThriftValue[]
  leavesOf(batches: readonly ColumnBatch[]): Iterable<Leaf>
} {
  const elements = [group('schema', undefined, columns.length)]
  for (const { name, type } of columns) addElements(elements, name, type)
  return {
    elements,
    *leavesOf(batches) {
      for (const [at, { name }] of columns.entries()) yield* leaves(batches[at] as ColumnBatch, [name], [])
    },
  }
}

function* leaves(batch: ColumnBatch, path: readonly string[], above: readonly ColumnBatch[]): Generator<Leaf> {
  const chain = [...above, batch]
  const names = partNames(batch.type)
  if (names === undefined) yield { batch, path, chain, physical: scalar(batch.type).physical }
  else for (const [at, part] of batch.parts.entries()) yield* leaves(part, [...path, ...(names[at] ?? [])], chain)
}

function partNames(type: ValueType): readonly (readonly string[])[] | undefined {
  if (type.kind === 'list') return [['list', 'element']]
  if (type.kind === 'map')
    return [
      ['key_value', 'key'],
      ['key_value', 'value'],
    ]
  return type.kind === 'tuple' ? type.fields.map(({ name }, at) => [name ?? String(at + 1)]) : undefined
}

function addElements(elements: ThriftValue[], name: string, type: ValueType): void {
  switch (type.kind) {
    case 'list':
      elements.push(group(name, REQUIRED, 1, { converted: LIST, logical: [LOGICAL.list] }), group('list', REPEATED, 1))
      addElements(elements, 'element', type.items)
      return
    case 'map':
      elements.push(
        group(name, REQUIRED, 1, { converted: MAP, logical: [LOGICAL.map] }),
        group('key_value', REPEATED, 2),
      )
      addElements(elements, 'key', type.key)
      addElements(elements, 'value', type.value)
      return
    case 'tuple':
      elements.push(group(name, REQUIRED, type.fields.length))
      for (const [at, field] of type.fields.entries()) addElements(elements, field.name ?? String(at + 1), field.type)
      return
    default: {
      const { physical, bytes, converted, digits, logical } = scalar(type)
      elements.push(
        struct([
          [1, i32(physical)],
          [2, bytes === undefined ? undefined : i32(bytes)],
          [3, i32(type.isNullable ? OPTIONAL : REQUIRED)],
          [4, binary(name)],
          [6, converted === undefined ? undefined : i32(converted)],
          [7, digits === undefined ? undefined : i32(digits.scale)],
          [8, digits === undefined ? undefined : i32(digits.digits)],
          [10, logical === undefined ? undefined : logicalType(...logical)],
        ]),
      )
    }
  }
}

type Annotation = {
  readonly converted?: number | undefined
  readonly logical?: readonly [field: number, value?: ThriftValue]
}

function group(
  name: string,
  repetition: number | undefined,
  children: number,
  { converted, logical }: Annotation = {},
): ThriftValue {
  return struct([
    [3, repetition === undefined ? undefined : i32(repetition)],
    [4, binary(name)],
    [5, i32(children)],
    [6, converted === undefined ? undefined : i32(converted)],
    [10, logical === undefined ? undefined : logicalType(...logical)],
  ])
}

function logicalType(field: number, value: ThriftValue = struct([])): ThriftValue {
  return struct([[field, value]])
}

type Scalar = Annotation & {
  readonly physical: number
  /** Length of a value of the fixed-length type. */
  readonly bytes?: number
  readonly digits?: { readonly digits: number; readonly scale: number }
}

function scalar(type: ValueType): Scalar {
  switch (type.kind) {
    case 'bool':
      return { physical: BOOLEAN }
    case 'int': {
      const { width, isSigned } = type
      // As ClickHouse writes 128-bit numbers; Parquet has no type for them.
      if (width === 16) return { physical: FIXED, bytes: 16 }
      const integer = struct([
        [1, byte(width * 8)],
        [2, flag(isSigned)],
      ])
      const converted = (isSigned ? SIGNED : UNSIGNED)[width]
      return { physical: width === 8 ? INT64 : INT32, converted, logical: [LOGICAL.integer, integer] }
    }
    case 'float':
      return { physical: type.width === 4 ? FLOAT : DOUBLE }
    case 'date':
      return { physical: INT32, converted: DATE, logical: [LOGICAL.date] }
    case 'time': {
      const { unit } = timeUnit(type.scale, PARQUET_TIMES)
      const timestamp = struct([
        [1, flag(true)],
        [2, struct([[unit + 1, struct([])]])],
      ])
      const converted = [TIMESTAMP_MILLIS, TIMESTAMP_MICROS][unit]
      return { physical: INT64, converted, logical: [LOGICAL.timestamp, timestamp] }
    }
    case 'decimal': {
      const { width, digits, scale } = type
      const decimal = struct([
        [1, i32(scale)],
        [2, i32(digits)],
      ])
      const physical = width === 4 ? INT32 : width === 8 ? INT64 : FIXED
      const size = width === 16 ? { bytes: 16 } : {}
      return { physical, ...size, digits: { digits, scale }, converted: DECIMAL, logical: [LOGICAL.decimal, decimal] }
    }
    case 'uuid':
      return { physical: FIXED, bytes: 16, logical: [LOGICAL.uuid] }
    default:
      return { physical: BYTE_ARRAY, converted: UTF8, logical: [LOGICAL.string] }
  }
}
