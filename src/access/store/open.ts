import type { Clock } from '../../core/clock.ts'
import { ServiceError } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'
import type { SqlDatabase } from '../../platform/db/sql.ts'
import { createSqliteFile, openSqlite } from '../../platform/db/sqlite.ts'
import { sqliteFileExists } from '../../platform/db/sqlite-file.ts'
import { fileSize } from '../../platform/files/append.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { findLostChange } from '../audit/verify.ts'
import { findRowDamage, HISTORY_TABLES } from './check.ts'
import { olderStore, readSchemaVersion } from './meta.ts'
import { latestVersion, MIGRATIONS, type Migration, migrateStore } from './migrations.ts'
import { createTableRows } from './rows.ts'
import { type AuditOptions, createSqlStore, lostChanges } from './sql-store.ts'
import type { AccessStore } from './store.ts'

/** The location of the store. `password` is the secret itself, resolved by the caller. */
export type StoreLocation =
  | { readonly engine: 'sqlite'; readonly file: string }
  | {
      readonly engine: 'postgres'
      readonly url: string
      readonly password?: string | undefined
      readonly schema?: string | undefined
    }

/**
 * `full` reads all rows and refuses a damaged store; `records` does so without the history of usage, which may have very many rows; `quick` reads
 * none. Whatever was checked at the start, a row is checked when it is read, but for usage that is only added up, of a month or an hour.
 */
export type StoreCheck = 'full' | 'records' | 'quick'

export type OpenStoreOptions = {
  readonly location: StoreLocation
  readonly audit: AuditOptions
  readonly check: StoreCheck
  /** Whether a missing store is created, and an older one migrated; by default they are. */
  readonly create?: boolean
  /** How long a change waits for another writer. */
  readonly lockWaitMs?: number
  readonly migrations?: readonly Migration[]
}

export type OpenStoreDeps = { readonly clock: Clock; readonly random: Random; readonly log: Logger }

/** Opens the store, or creates one where there has never been one, and migrates its tables. Without `create` a missing or older one is refused. */
export async function openStore(options: OpenStoreOptions, deps: OpenStoreDeps): Promise<AccessStore> {
  const { audit, check, migrations = MIGRATIONS, create = true } = options
  const withoutHistory = check === 'records'
  await using opening = new AsyncDisposableStack()
  const database = opening.use(await openDatabase(options, deps))
  const rows = createTableRows(database)
  // Before any migration.
  if (check !== 'quick') refuseDamaged(database, await database.damage(withoutHistory ? HISTORY_TABLES : []))
  const isPostgres = options.location.engine === 'postgres'
  const schemaVersion = latestVersion(migrations)
  if (!create) {
    const found = await readSchemaVersion(database, database)
    if (found === 0 && isPostgres) throw noStore(database.name)
    // Processes of the older version that use the store would lose it.
    if (found > 0 && found < schemaVersion) throw olderStore(database, found, schemaVersion)
  }
  await migrateStore(database, rows, { migrations, create: isPostgres })

  const store = createSqlStore({ schemaVersion, audit }, { ...deps, database, rows })
  await store.revision()
  if (check !== 'quick') refuseDamaged(database, await findRowDamage(database, rows, { schemaVersion, withoutHistory }))
  const lost = await findLostChange(store)
  if (lost !== undefined) throw lostChanges(database, audit.file, lost)
  opening.move()
  return store
}

async function openDatabase(options: OpenStoreOptions, deps: OpenStoreDeps): Promise<SqlDatabase> {
  const { location, audit, lockWaitMs, migrations = MIGRATIONS, create = true } = options
  if (location.engine === 'postgres') {
    // Only a store on PostgreSQL loads its client.
    const { openPostgres } = await import('../../platform/db/postgres.ts')
    return openPostgres({ ...location, lockWaitMs }, deps)
  }
  const { file } = location
  if (!(await sqliteFileExists(file))) {
    // An audit log without a store means that the store was lost: creating an empty one would hide that.
    if (((await fileSize(audit.file)) ?? 0) > 0) {
      const fix = `Restore a backup: sluice restore BACKUP. To start with an empty store, move the log away: mv ${audit.file} ${audit.file}.old`
      throw new ServiceError('store-corrupt', `${file} is missing, although ${audit.file} exists`, {
        fields: { file },
        fix,
      })
    }
    if (!create) throw noStore(file)
    await createSqliteFile({ file, lockWaitMs }, deps, (database) =>
      migrateStore(database, createTableRows(database), { migrations, create: true }),
    )
  }
  return openSqlite({ file, lockWaitMs }, deps)
}

function noStore(name: string): ServiceError {
  return new ServiceError('not-found', `there is no access store at ${name}: is this the right one?`, {
    fields: { store: name },
  })
}

function refuseDamaged(database: SqlDatabase, found: readonly string[]): void {
  if (found.length === 0) return
  const more = found.length === 1 ? '' : ` (and ${found.length - 1} more)`
  throw new ServiceError('store-corrupt', `${database.name} is damaged: ${found[0]}${more}`, {
    fields: { store: database.name, findings: found.length },
    fix: database.restoreAdvice,
  })
}
