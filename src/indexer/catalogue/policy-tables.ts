import { DATABASE } from '../schema.ts'
import { DATABASES, TABLES_BY_DATABASE } from './catalogue.ts'
import { CATALOGUE_SCHEMAS } from './catalogue-names.ts'

/** Tables that a statement may name on the embedded engine, for each database that names without one may mean. */
export function policyTables(current: string): {
  readonly database: string
  readonly tables: ReadonlySet<string>
  readonly schemas: ReadonlyMap<string, ReadonlySet<string>>
} {
  return { database: schemaOf(current), tables: TABLES_BY_DATABASE.get(current) ?? NONE, schemas: SCHEMAS }
}

const NONE: ReadonlySet<string> = new Set()

const SCHEMAS: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  [...DATABASES].map((database) => [schemaOf(database), TABLES_BY_DATABASE.get(database) ?? NONE]),
)

function schemaOf(database: string): string {
  return CATALOGUE_SCHEMAS[database] ?? DATABASE
}
