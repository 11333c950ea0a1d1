import { CATALOGUE_TABLES } from '../catalogue/catalogue.ts'
import { CATALOGUE_SCHEMAS } from '../catalogue/catalogue-names.ts'
import { CLICKHOUSE_TYPES, type Column, DATABASE, PUBLISHED } from '../schema.ts'
import { parseType } from './parse-type.ts'
import type { Type } from './types.ts'

/** A table as the engine has it. */
type KnownTable = {
  readonly schema: string
  readonly columns: readonly { readonly name: string; readonly type: Type }[]
}

/** The tables of a database by name, both in lower case; undefined for a database that customers do not have. */
export function tablesOf(database: string): ReadonlyMap<string, KnownTable> | undefined {
  return TABLES.get(database)
}

/** The tables that a statement may name, by database and name in lower case. */
const TABLES: ReadonlyMap<string, ReadonlyMap<string, KnownTable>> = new Map([
  [
    DATABASE,
    new Map(
      PUBLISHED.map(({ name, columns }) => [
        name,
        tableOf(
          DATABASE,
          columns.map((column: Column) => ({ name: column.name, type: CLICKHOUSE_TYPES[column.type] })),
        ),
      ]),
    ),
  ],
  ...Object.entries(CATALOGUE_SCHEMAS).map(
    ([database, schema]) =>
      [
        database,
        new Map(
          CATALOGUE_TABLES.filter((table) => table.database === database).map(({ name, columns }) => [
            name,
            tableOf(schema, columns),
          ]),
        ),
      ] as const,
  ),
])

function tableOf(schema: string, columns: readonly { readonly name: string; readonly type: string }[]): KnownTable {
  return { schema, columns: columns.map(({ name, type }) => ({ name, type: parseType(type) })) }
}
