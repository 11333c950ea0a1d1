/** Types of columns, parameters and results, with the names that other databases have for them. */
export const DATA_TYPES: readonly {
  readonly name: string
  readonly case_insensitive: number
  readonly alias_to: string
}[] = [
  ...`String UInt8 UInt16 UInt32 UInt64 UInt128 Int8 Int16 Int32 Int64 Int128 Float32 Float64 Bool Date Date32 DateTime DateTime64 Decimal UUID
  Array Nullable LowCardinality Tuple Map Nothing`
    .split(/\s+/)
    .map((name) => ({
      name,
      case_insensitive: /^(Bool|Date|Date32|DateTime|DateTime64|Decimal)$/.test(name) ? 1 : 0,
      alias_to: '',
    })),
  ...Object.entries({
    String: 'TEXT VARCHAR CHAR BLOB',
    Int8: 'TINYINT BYTE',
    Int16: 'SMALLINT',
    Int32: 'INT INTEGER',
    Int64: 'BIGINT',
    Float32: 'FLOAT REAL',
    Float64: 'DOUBLE',
    Bool: 'BOOLEAN',
    DateTime: 'TIMESTAMP',
    Decimal: 'DEC NUMERIC',
  }).flatMap(([name, aliases]) =>
    aliases.split(' ').map((alias) => ({ name: alias, case_insensitive: 1, alias_to: name })),
  ),
]
