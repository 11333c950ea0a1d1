/** A table of the databases `system` and `information_schema`. Its rows are made from our own lists, never from the engine's catalogue. */
export type CatalogueTable = {
  readonly database: CatalogueDatabase
  readonly name: string
  readonly help: string
  readonly columns: readonly CatalogueColumn[]
  /** Undefined for `system.numbers`, whose rows the engine makes. */
  readonly rows: readonly CatalogueRow[] | undefined
}

export type CatalogueDatabase = 'system' | 'information_schema'
export type CatalogueColumn = { readonly name: string; readonly type: CatalogueType }
export type CatalogueRow = readonly CatalogueValue[]
export type CatalogueValue = string | number | boolean | null | readonly string[]

/** ClickHouse's names of the types that these tables use. */
export type CatalogueType =
  | 'String'
  | 'UInt8'
  | 'UInt64'
  | 'Array(String)'
  | 'UUID'
  | "DateTime('UTC')"
  | 'Nullable(String)'
  | 'Nullable(UInt64)'

/** A table from a list of `name Type` and rows as objects; what a row does not give has the default of the type. */
export function catalogueTable(
  database: CatalogueDatabase,
  name: string,
  help: string,
  columns: Readonly<Record<string, CatalogueType>>,
  rows: readonly Readonly<Record<string, CatalogueValue>>[] | undefined,
): CatalogueTable {
  const listed = Object.entries(columns).map(([column, type]) => ({ name: column, type }))
  return {
    database,
    name,
    help,
    columns: listed,
    rows: rows?.map((row) => listed.map((column) => row[column.name] ?? DEFAULTS[column.type])),
  }
}

const DEFAULTS: Readonly<Record<CatalogueType, CatalogueValue>> = {
  String: '',
  UInt8: 0,
  UInt64: 0,
  'Array(String)': [],
  UUID: '00000000-0000-0000-0000-000000000000',
  "DateTime('UTC')": '1970-01-01 00:00:00',
  'Nullable(String)': null,
  'Nullable(UInt64)': null,
}

/** A table as `system.tables` and `information_schema.tables` list it. */
export type ListedTable = {
  readonly database: string
  readonly name: string
  readonly help: string
  readonly key: readonly string[]
  readonly columns: readonly { readonly name: string; readonly type: string; readonly help: string }[]
  readonly isSystem: boolean
}
