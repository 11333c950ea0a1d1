import { DATABASE, PUBLISHED_NAMES } from '../schema.ts'
import type { CatalogueTable, ListedTable } from './catalogue-table.ts'
import { INFORMATION_SCHEMA_SHAPE, informationSchema } from './information-schema.ts'
import { listedTable, PUBLISHED_TABLES, systemDatabase } from './system-database.ts'

const SYSTEM = systemDatabase(INFORMATION_SCHEMA_SHAPE.map(listedTable))

/** Every table of `system` and `information_schema`, with its rows. */
export const CATALOGUE_TABLES: readonly CatalogueTable[] = [
  ...SYSTEM,
  ...informationSchema([...PUBLISHED_TABLES, ...[...SYSTEM, ...INFORMATION_SCHEMA_SHAPE].map(listedTable)]),
]

/** Every table that a statement may name. */
export const LISTED_TABLES: readonly ListedTable[] = [...PUBLISHED_TABLES, ...CATALOGUE_TABLES.map(listedTable)]

/** Names of the tables, by the name of their database in lower case. */
export const TABLES_BY_DATABASE: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  [DATABASE, PUBLISHED_NAMES],
  ...(['system', 'information_schema'] as const).map(
    (database) =>
      [
        database,
        new Set(CATALOGUE_TABLES.filter((table) => table.database === database).map(({ name }) => name)),
      ] as const,
  ),
])

export const DATABASES: ReadonlySet<string> = new Set(TABLES_BY_DATABASE.keys())
