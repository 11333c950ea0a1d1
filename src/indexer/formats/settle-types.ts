import type { DuckColumnValues, DuckType } from '../../platform/db/duckdb-column.ts'
import { baseType, type ResultColumn } from '../query/format-values.ts'
import { isWritableAs } from './fill-batch.ts'
import { readNumber } from './fixed-layout.ts'
import { parseTypeName, STRING, type TypedColumn, type ValueType } from './value-type.ts'

/** A column of a result before its ClickHouse type is known. */
export type UntypedColumn = ResultColumn & {
  readonly engine: DuckType
  /** Whether the statement proves that no value is NULL. */
  readonly isNullFree: boolean
}

/** What the values of a column have shown. */
type Seen = { hasNull: boolean; sumMin: bigint; sumMax: bigint; readonly parts: readonly Seen[] }

/** Decides the types of a result from the first of its values. */
export type TypeObserver = {
  /** Yields between short steps, so that the caller can pause. */
  observe(chunk: { readonly rowCount: number; column(at: number): DuckColumnValues }): Generator<void>
  /**
   * Of a complete result, a column is Nullable if it has a NULL, and a sum that fits into 64 bits has 64 bits. Otherwise a column is Nullable unless
   * the statement proves that it has no NULL, and a sum has 128 bits.
   */
  settle(isComplete: boolean): readonly TypedColumn[]
}

const U64_MAX = 2n ** 64n - 1n
const I64_MIN = -(2n ** 63n)
const I64_MAX = 2n ** 63n - 1n
const STEP = 512

export function observeTypes(columns: readonly UntypedColumn[]): TypeObserver {
  const seen = columns.map(({ engine }) => nothingSeen(engine))
  return {
    *observe(chunk) {
      for (const [at, { engine }] of columns.entries())
        yield* observe(seen[at] as Seen, engine, chunk.column(at), 0, chunk.rowCount)
    },
    settle: (isComplete) =>
      columns.map((column, at) => ({
        name: column.name,
        type: settleColumn(column, seen[at] as Seen, isComplete),
      })),
  }
}

function nothingSeen(engine: DuckType): Seen {
  return { hasNull: false, sumMin: 0n, sumMax: 0n, parts: partsOf(engine).map(nothingSeen) }
}

function partsOf(engine: DuckType): readonly DuckType[] {
  switch (engine.kind) {
    case 'list':
      return [engine.items]
    case 'map':
      return [engine.key, engine.value]
    case 'struct':
      return engine.fields.map(([, type]) => type)
    default:
      return []
  }
}

function* observe(seen: Seen, engine: DuckType, values: DuckColumnValues, from: number, to: number): Generator<void> {
  const isSum = engine.name === 'HUGEINT'
  const isNested = seen.parts.length > 0
  if (!values.mayHaveNulls && !isSum && !isNested) return
  const source = Buffer.from(values.bytes.buffer, values.bytes.byteOffset, values.bytes.byteLength)
  for (let at = from; at < to; at++) {
    if (at % STEP === 0) yield
    if (values.isNull(at)) {
      seen.hasNull = true
      // The fields of a tuple that is NULL are NULL.
      if (engine.kind === 'struct') for (const part of seen.parts) part.hasNull = true
    } else if (isSum) {
      const value = readNumber(source, at, { width: 16, isSigned: true })
      if (value < seen.sumMin) seen.sumMin = value
      if (value > seen.sumMax) seen.sumMax = value
    } else if (engine.kind === 'list' || engine.kind === 'map') {
      const start = values.start(at)
      const parts = engine.kind === 'list' ? [values.items] : [values.items.field(0), values.items.field(1)]
      for (const [part, type] of partsOf(engine).entries())
        yield* observe(
          seen.parts[part] as Seen,
          type,
          parts[part] as DuckColumnValues,
          start,
          start + values.length(at),
        )
    }
  }
  if (engine.kind === 'struct')
    for (const [part, type] of partsOf(engine).entries())
      yield* observe(seen.parts[part] as Seen, type, values.field(part), from, to)
}

function settleColumn({ reported, engine, isNullFree }: UntypedColumn, seen: Seen, isComplete: boolean): ValueType {
  const own = typeOf(engine, seen, isComplete)
  const wanted = reported === undefined ? undefined : parseTypeName(reported)
  const type = wanted !== undefined && isWritableAs(engine, wanted) ? wanted : own
  return withNulls(type, seen, !isComplete && !isNullFree)
}

function typeOf(engine: DuckType, seen: Seen, isComplete: boolean): ValueType {
  const part = (at: number, of: DuckType): ValueType => typeOf(of, seen.parts[at] as Seen, isComplete)
  if (hasOther(engine)) return STRING
  switch (engine.kind) {
    case 'list':
      return { kind: 'list', items: part(0, engine.items), isNullable: false }
    case 'map':
      return { kind: 'map', key: part(0, engine.key), value: part(1, engine.value), isNullable: false }
    case 'struct': {
      const fields = engine.fields.map(([name, of], at) => ({
        name: name === '' ? undefined : name,
        type: part(at, of),
      }))
      return { kind: 'tuple', fields, isNullable: false }
    }
    default:
  }
  if (engine.name !== 'HUGEINT') return parseTypeName(baseType(engine.name)) ?? STRING
  const isSigned = !isComplete || seen.sumMin < 0n
  const is128 = !isComplete || seen.sumMin < I64_MIN || seen.sumMax > (isSigned ? I64_MAX : U64_MAX)
  return { kind: 'int', width: is128 ? 16 : 8, isSigned: isSigned || is128, isNullable: false }
}

/** A type that contains values which can only be printed is printed as a whole. */
function hasOther(engine: DuckType): boolean {
  return engine.kind === 'other' || partsOf(engine).some(hasOther)
}

/** ClickHouse has no Nullable lists, maps and tuples, and no Nullable keys of maps. */
function withNulls(type: ValueType, seen: Seen, mayFollow: boolean): ValueType {
  const part = (at: number, of: ValueType): ValueType => withNulls(of, seen.parts[at] ?? seen, mayFollow)
  switch (type.kind) {
    case 'list':
      return { ...type, items: part(0, type.items) }
    case 'map':
      return { ...type, value: part(1, type.value) }
    case 'tuple':
      return { ...type, fields: type.fields.map((field, at) => ({ ...field, type: part(at, field.type) })) }
    default:
      return { ...type, isNullable: type.isNullable || type.kind === 'nothing' || seen.hasNull || mayFollow }
  }
}
