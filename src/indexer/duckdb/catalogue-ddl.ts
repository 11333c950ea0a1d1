import { CATALOGUE_TABLES } from '../catalogue/catalogue.ts'
import { CATALOGUE_SCHEMAS } from '../catalogue/catalogue-names.ts'
import type { CatalogueTable, CatalogueType, CatalogueValue } from '../catalogue/catalogue-table.ts'
import { NUMBERS_MAX } from '../catalogue/system-database.ts'

/** Statements that create the tables of `system` and `information_schema` in a catalogue of the engine. */
export function catalogueDdl(catalogue: string): readonly string[] {
  return [
    ...Object.values(CATALOGUE_SCHEMAS).map((schema) => `CREATE SCHEMA ${catalogue}.${schema}`),
    ...CATALOGUE_TABLES.flatMap((table) => tableDdl(`${catalogue}.${CATALOGUE_SCHEMAS[table.database]}`, table)),
  ]
}

function tableDdl(schema: string, { name, columns, rows }: CatalogueTable): readonly string[] {
  const table = `${schema}.${quoted(name)}`
  if (rows === undefined)
    return [`CREATE VIEW ${table} AS SELECT CAST(range AS UBIGINT) AS number FROM range(0, ${NUMBERS_MAX})`]
  const listed = columns.map((column) => `${quoted(column.name)} ${ENGINE_TYPES[column.type]}`)
  const values = rows.map((row) => `(${row.map(literal).join(', ')})`)
  return [
    `CREATE TABLE ${table} (${listed.join(', ')})`,
    ...(values.length === 0 ? [] : [`INSERT INTO ${table} VALUES ${values.join(', ')}`]),
  ]
}

const ENGINE_TYPES: Readonly<Record<CatalogueType, string>> = {
  String: 'VARCHAR',
  UInt8: 'UTINYINT',
  UInt64: 'UBIGINT',
  'Array(String)': 'VARCHAR[]',
  UUID: 'UUID',
  "DateTime('UTC')": 'TIMESTAMP_S',
  'Nullable(String)': 'VARCHAR',
  'Nullable(UInt64)': 'UBIGINT',
}

function literal(value: CatalogueValue): string {
  if (value === null) return 'NULL'
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`
  if (typeof value === 'object') return `[${value.map(literal).join(', ')}]`
  return String(value)
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
