import { ServiceError } from '../../core/error.ts'
import type { SqlDatabase, SqlWriter } from '../../platform/db/sql.ts'
import { CREATE_AUDIT } from '../audit/rows.ts'
import { CREATE_BILLING } from './billing/tables.ts'
import { NEW_META, newerStore, readSchemaVersion, writeMeta } from './meta.ts'
import { createTable, type TableRows } from './rows.ts'
import { type AnyTable, META_TABLE, RECORD_TABLES, TABLES } from './tables.ts'
import { ADD_USAGE_BYTES, CREATE_METHOD_USAGE, CREATE_USAGE } from './usage-rows.ts'
import { addValidUntil } from './valid-until.ts'

/** One migration. There is no downgrade: a migrated store can be opened only by this version or a later one. */
export type Migration = {
  readonly version: number
  migrate(tx: SqlWriter): Promise<void>
}

/** The subscriptions of a customer in the order of their names, for pages and search. */
const INDEX_OF_CUSTOMER = 'CREATE INDEX subscriptions_by_customer_id_name ON subscriptions (customer_id, name)'

/** The tables of version 1, with its columns. */
const FIRST_TABLES: readonly AnyTable[] = TABLES.filter(({ name }) => name !== RECORD_TABLES.admins.name).map(
  (table) => ({ ...table, columns: table.columns.filter((column) => column !== 'validUntil') }),
)

/** A released migration never changes (a test pins the SQL of the first); a change of the tables is a new migration at the end. */
export const MIGRATIONS: readonly Migration[] = [
  { version: 1, migrate: (tx) => runAll(tx, [...FIRST_TABLES.flatMap(createTable), ...CREATE_AUDIT, ...CREATE_USAGE]) },
  { version: 2, migrate: (tx) => runAll(tx, CREATE_METHOD_USAGE) },
  { version: 3, migrate: (tx) => runAll(tx, createTable(RECORD_TABLES.admins)) },
  { version: 4, migrate: (tx) => runAll(tx, [INDEX_OF_CUSTOMER]) },
  { version: 5, migrate: (tx) => runAll(tx, CREATE_BILLING) },
  { version: 6, migrate: (tx) => runAll(tx, ADD_USAGE_BYTES) },
  { version: 7, migrate: addValidUntil },
]

export function latestVersion(migrations: readonly Migration[]): number {
  return migrations.at(-1)?.version ?? 0
}

/** Migrates the tables to the latest version in one transaction. With `create`, a database without tables becomes a new store. */
export async function migrateStore(
  database: SqlDatabase,
  rows: TableRows,
  { migrations, create }: { migrations: readonly Migration[]; create: boolean },
): Promise<void> {
  const latest = latestVersion(migrations)
  const found = await readSchemaVersion(database, database)
  if (found > latest) throw newerStore(database, found, latest)
  if (found === latest) return
  if (found === 0 && !create) {
    throw new ServiceError('store-corrupt', `${database.name}: its tables are missing`, {
      fields: { store: database.name },
      fix: database.restoreAdvice,
    })
  }
  await database.change(async (tx) => {
    // Another process may have migrated it meanwhile.
    const from = await readSchemaVersion(tx, database)
    for (const step of migrations) if (step.version > from) await step.migrate(tx)
    if (from >= latest) return
    const [row] = from === 0 ? [] : await tx.rows(rows(META_TABLE).select(''))
    const meta = row === undefined ? NEW_META : rows(META_TABLE).decode(row)
    await writeMeta(tx, rows, { ...meta, schemaVersion: latest })
  })
}

async function runAll(tx: SqlWriter, statements: readonly string[]): Promise<void> {
  for (const sql of statements) await tx.run(sql)
}
