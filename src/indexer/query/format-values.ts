/** A column of a result: its name, and its ClickHouse type where the engine's own type does not give it. */
export type ResultColumn = { readonly name: string; readonly reported?: string | undefined }

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

/** ClickHouse's name for an engine's type. */
export function baseType(duckType: string): string {
  if (duckType.endsWith('[]')) return `Array(${baseType(duckType.slice(0, -2))})`
  if (duckType.startsWith('DECIMAL')) return duckType.replace('DECIMAL', 'Decimal').replace(',', ', ')
  return TYPES[duckType] ?? 'String'
}

/** Values of the engine's library. */
type Printed = { toString(): string }

/** The text of a value of a type that ClickHouse does not have, such as an interval. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (value as Printed).toString()
}
