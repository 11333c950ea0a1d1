import type { DuckType } from '../../platform/db/duckdb-column.ts'
import { isWritableAs } from './fill-batch.ts'
import { parseTypeName, STRING, type TypedColumn, type ValueType } from './value-type.ts'

/** A column of a result: its ClickHouse type where the statement gives it, and the engine's type of its values. */
export type ResultColumn = { readonly name: string; readonly type?: string | undefined; readonly engine: DuckType }

/** The type that the statement gives; a column without one, or with values of another kind, has the engine's type. */
export function typedColumn({ name, type, engine }: ResultColumn): TypedColumn {
  const given = type === undefined ? undefined : parseTypeName(type)
  return { name, type: given !== undefined && isWritableAs(engine, given) ? given : engineType(engine) }
}

const TYPES: Readonly<Record<string, string>> = {
  UBIGINT: 'UInt64',
  BIGINT: 'Int64',
  UINTEGER: 'UInt32',
  INTEGER: 'Int32',
  USMALLINT: 'UInt16',
  SMALLINT: 'Int16',
  UTINYINT: 'UInt8',
  TINYINT: 'Int8',
  VARCHAR: 'String',
  BOOLEAN: 'Bool',
  DOUBLE: 'Float64',
  FLOAT: 'Float32',
  HUGEINT: 'Int128',
  UHUGEINT: 'UInt128',
  TIMESTAMP_S: "DateTime('UTC')",
  TIMESTAMP: "DateTime64(6, 'UTC')",
  TIMESTAMP_MS: "DateTime64(3, 'UTC')",
  TIMESTAMP_NS: "DateTime64(9, 'UTC')",
  'TIMESTAMP WITH TIME ZONE': "DateTime64(6, 'UTC')",
  DATE: 'Date32',
  UUID: 'UUID',
  SQLNULL: 'Nothing',
  '"NULL"': 'Nothing',
}

/** ClickHouse's type for values of an engine's type. ClickHouse has no Nullable lists, maps and tuples, and no Nullable keys of maps. */
export function engineType(engine: DuckType, { isNullable = true } = {}): ValueType {
  const part = (of: DuckType): ValueType => engineType(of, { isNullable })
  // A type that contains values which can only be printed is printed as a whole.
  if (hasOther(engine)) return { ...STRING, isNullable }
  switch (engine.kind) {
    case 'list':
      return { kind: 'list', items: part(engine.items), isNullable: false }
    case 'map':
      return {
        kind: 'map',
        key: engineType(engine.key, { isNullable: false }),
        value: part(engine.value),
        isNullable: false,
      }
    case 'struct': {
      const fields = engine.fields.map(([name, of]) => ({ name: name === '' ? undefined : name, type: part(of) }))
      return { kind: 'tuple', fields, isNullable: false }
    }
    case 'decimal':
      return { ...(parseTypeName(`Decimal(${engine.digits}, ${engine.scale})`) ?? STRING), isNullable }
    default: {
      const type = parseTypeName(TYPES[engine.name] ?? 'String') ?? STRING
      return { ...type, isNullable: isNullable || type.kind === 'nothing' }
    }
  }
}

function hasOther(engine: DuckType): boolean {
  switch (engine.kind) {
    case 'other':
      return true
    case 'list':
      return hasOther(engine.items)
    case 'map':
      return hasOther(engine.key) || hasOther(engine.value)
    case 'struct':
      return engine.fields.some(([, type]) => hasOther(type))
    default:
      return false
  }
}
