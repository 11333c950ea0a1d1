import { CATALOGUE_TABLES } from '../catalogue/catalogue.ts'
import { CATALOGUE_SCHEMAS } from '../catalogue/catalogue-names.ts'
import type { CatalogueTable, CatalogueType } from '../catalogue/catalogue-table.ts'
import { NUMBERS_MAX } from '../catalogue/system-database.ts'

type CatalogueStatement = { readonly sql: string; readonly parameters?: Readonly<Record<string, string>> }

/** Statements that create the tables of `system` and `information_schema` in a catalogue of the engine. */
export function catalogueDdl(catalogue: string): readonly CatalogueStatement[] {
  return [
    ...Object.values(CATALOGUE_SCHEMAS).map((schema) => ({ sql: `CREATE SCHEMA ${catalogue}.${schema}` })),
    ...CATALOGUE_TABLES.flatMap((table) => tableDdl(`${catalogue}.${CATALOGUE_SCHEMAS[table.database]}`, table)),
  ]
}

/** The rows are given as one JSON text: thousands of literals take the engine's parser many times as long. */
function tableDdl(schema: string, { name, columns, rows }: CatalogueTable): readonly CatalogueStatement[] {
  const table = `${schema}.${quoted(name)}`
  if (rows === undefined)
    return [{ sql: `CREATE VIEW ${table} AS SELECT CAST(range AS UBIGINT) AS number FROM range(0, ${NUMBERS_MAX})` }]
  const listed = columns.map((column) => `${quoted(column.name)} ${ENGINE_TYPES[column.type]}`)
  const created = { sql: `CREATE TABLE ${table} (${listed.join(', ')})` }
  if (rows.length === 0) return [created]
  const structure = JSON.stringify([
    Object.fromEntries(columns.map((column, at) => [`c${at}`, JSON_TYPES[column.type]])),
  ])
  const json = JSON.stringify(rows.map((row) => Object.fromEntries(row.map((value, at) => [`c${at}`, value]))))
  const sql = `INSERT INTO ${table} SELECT unnest(r) FROM (SELECT unnest(from_json($json::JSON, '${structure}')) AS r)`
  return [created, { sql, parameters: { json } }]
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

/** Types of the values in JSON; the engine converts texts to the type of their column. */
const JSON_TYPES: Readonly<Record<CatalogueType, string>> = {
  ...ENGINE_TYPES,
  UUID: 'VARCHAR',
  "DateTime('UTC')": 'VARCHAR',
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
