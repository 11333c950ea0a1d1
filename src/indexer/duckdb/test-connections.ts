import type { DuckConnection, DuckDatabase } from '../../platform/db/duckdb.ts'

/** The same database; in each of its connections some functions are replaced. */
export function replaceInConnections(
  database: DuckDatabase,
  replacementsFor: (connection: DuckConnection) => Partial<DuckConnection>,
): DuckDatabase {
  return {
    ...database,
    async connect() {
      const connection = await database.connect()
      return { ...connection, ...replacementsFor(connection) }
    },
  }
}
