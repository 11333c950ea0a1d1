import { ServiceError } from '../../core/error.ts'
import { openPostgres } from '../../platform/db/postgres.ts'
import type { SqlDatabase, SqlWriter } from '../../platform/db/sql.ts'
import { createSqliteFile } from '../../platform/db/sqlite.ts'
import { sqliteFileExists } from '../../platform/db/sqlite-file.ts'
import { openAppendFile } from '../../platform/files/append.ts'
import { insertAuditLine } from '../audit/rows.ts'
import { markRestoredHours } from '../store/billing/hours.ts'
import { type BillingRow, billingTable } from '../store/billing/tables.ts'
import { findRowDamage } from '../store/check.ts'
import { NEW_META, readMeta, writeMeta } from '../store/meta.ts'
import { latestVersion, MIGRATIONS, migrateStore } from '../store/migrations.ts'
import type { AddedUsage, MethodUsageRow, RecordKind } from '../store/model.ts'
import type { OpenStoreDeps, StoreLocation } from '../store/open.ts'
import { addToSum, EMPTY_TALLY } from '../store/record-access.ts'
import { createTableRows, type TableRows } from '../store/rows.ts'
import {
  LAST_USED_TABLE,
  type Meta,
  RECORD_TABLES,
  SHARED_KEY_TABLE,
  type SharedKeyRow,
  type Table,
  type Tally,
} from '../store/tables.ts'
import { addMethodUsage, addUsage } from '../store/usage-rows.ts'
import {
  BACKUP_FORMAT,
  BACKUP_FORMAT_MIN,
  BACKUP_LINE_BYTES_MAX,
  type BackupEntry,
  damagedBackup,
  readBackup,
} from './format.ts'
import { type BackupExtra, type BackupHeader, type BackupSummary, type ExtraKind, isExtraKind } from './summary.ts'

const SCHEMA_VERSION = latestVersion(MIGRATIONS)
const USAGE_ROWS = 500

/** A backup that was read completely: its summary, and lines that are not rows of the store. */
type CheckedBackup = BackupSummary & { readonly extras: readonly BackupExtra[] }

/**
 * Reads the complete file and summarizes it; throws when it is damaged or of another version. Changes nothing. Of the lines that are not rows of the store only those
 * of `kinds` are kept, where it is given: there may be a million.
 */
export async function checkBackup(path: string, kinds?: readonly ExtraKind[]): Promise<CheckedBackup> {
  const { entries, summary } = openBackup(path)
  const extras: BackupExtra[] = []
  for await (const entry of entries) if (isExtra(entry) && kinds?.includes(entry.kind) !== false) extras.push(entry)
  return { ...summary(), extras }
}

function isExtra(entry: BackupEntry): entry is BackupExtra {
  return isExtraKind(entry.kind)
}

/**
 * Creates a store from a backup where there is none. A SQLite file appears only when it is complete; a PostgreSQL database is filled in one
 * transaction. The new store is checked before it becomes visible.
 */
export async function restoreBackup(
  path: string,
  location: StoreLocation,
  deps: OpenStoreDeps & {
    /** The keys that the processes of the store shared, from the encrypted part of the backup. Without them new ones are created. */
    readonly sharedKeys?: readonly SharedKeyRow[]
  },
): Promise<BackupSummary> {
  const fill = async (database: SqlDatabase): Promise<BackupSummary> => {
    const rows = createTableRows(database)
    await migrateStore(database, rows, { migrations: MIGRATIONS, create: true })
    const { entries, summary } = openBackup(path)
    await database.change(async (tx) => {
      const meta = await readMeta(tx, rows, { schemaVersion: SCHEMA_VERSION, store: database })
      if (meta.revision > 0 || meta.auditSeq > 0) throw notEmpty(database)
      const tallies = await putEntries(tx, rows, entries)
      await markRestoredHours(tx)
      const shared = rows(SHARED_KEY_TABLE)
      for (const row of deps.sharedKeys ?? []) await tx.run(shared.upsert, shared.encode(row))
      // All entries were read, so the file is complete.
      const { revision, audit } = summary().header
      await writeMeta(tx, rows, {
        ...NEW_META,
        schemaVersion: SCHEMA_VERSION,
        revision,
        auditSeq: audit.seq,
        auditHash: audit.hash,
        tallies,
      })
    })
    const [finding] = await findRowDamage(database, rows, { schemaVersion: SCHEMA_VERSION })
    if (finding !== undefined) throw damagedBackup(path, finding)
    return summary()
  }

  if (location.engine === 'postgres') {
    await using database = await openPostgres(location, deps)
    return await fill(database)
  }
  if (await sqliteFileExists(location.file)) throw notEmpty({ name: location.file })
  let restored: BackupSummary | undefined
  await createSqliteFile({ file: location.file }, deps, async (database) => {
    restored = await fill(database)
  })
  return restored as BackupSummary
}

/** The entries of a file, and its summary once they have been read to the end. The file is open only while they are read. */
function openBackup(path: string) {
  let complete: BackupSummary | undefined
  async function* entries(): AsyncGenerator<BackupEntry> {
    await using file = await openAppendFile(path, 'read')
    if (file === undefined) {
      throw new ServiceError('not-found', `there is no backup ${path}`, {
        fix: 'Name a file made by: sluice backup FILE',
      })
    }
    const lines = file.lines(0, BACKUP_LINE_BYTES_MAX)
    yield* readBackup(
      { name: path, lines },
      {
        onHeader: refuseOtherVersion,
        onComplete(summary) {
          complete = summary
        },
      },
    )
  }
  return {
    entries: entries(),
    summary(): BackupSummary {
      if (complete === undefined) throw damagedBackup(path, 'it was not read to its end')
      return complete
    },
  }
}

/** A backup of an older version is restored: later migrations have only added tables, and a column that is 0 without it. */
function refuseOtherVersion({ format, schema_version: found, version }: BackupHeader): void {
  const isKnownFormat = format >= BACKUP_FORMAT_MIN && format <= BACKUP_FORMAT
  if (isKnownFormat && found >= 1 && found <= SCHEMA_VERSION) return
  throw new ServiceError(
    'store-newer',
    `the backup was made by Sluice ${version}, in format ${format} with tables of version ${found}; this Sluice knows format ${BACKUP_FORMAT} and version ${SCHEMA_VERSION}`,
    { fix: `Restore it with Sluice ${version}, then upgrade.` },
  )
}

async function putEntries(
  tx: SqlWriter,
  rows: TableRows,
  entries: AsyncIterable<BackupEntry>,
): Promise<Meta['tallies']> {
  const tallies: { -readonly [K in RecordKind]?: Tally } = {}
  const lastUsed = rows(LAST_USED_TABLE)
  let seq = 0
  let usage: AddedUsage[] = []
  let methods: MethodUsageRow[] = []
  for await (const entry of entries) {
    if (isExtra(entry)) continue
    if (entry.kind === 'audit') await insertAuditLine(tx, ++seq, entry.line)
    else if (entry.kind === 'last_used') await tx.run(lastUsed.insert, lastUsed.encode(entry.row))
    else if (isBilling(entry)) {
      const of = rows(billingTable(entry.kind) as Table<typeof entry.row>)
      await tx.run(of.insert, of.encode(entry.row))
    } else if (entry.kind === 'usage') {
      if (usage.push(entry.row) < USAGE_ROWS) continue
      await addUsage(tx, usage)
      usage = []
    } else if (entry.kind === 'usage_methods') {
      if (methods.push(entry.row) < USAGE_ROWS) continue
      await addMethodUsage(tx, methods)
      methods = []
    } else {
      const of = rows(RECORD_TABLES[entry.kind] as Table<typeof entry.record>)
      const row = of.encode(entry.record)
      await tx.run(of.insert, row)
      const { rows: count, sum } = tallies[entry.kind] ?? EMPTY_TALLY
      tallies[entry.kind] = { rows: count + 1, sum: addToSum(sum, row.at(-1) as number) }
    }
  }
  await addUsage(tx, usage)
  await addMethodUsage(tx, methods)
  return tallies
}

function isBilling(entry: BackupEntry): entry is BillingRow {
  return billingTable(entry.kind) !== undefined
}

function notEmpty({ name }: { readonly name: string }): ServiceError {
  return new ServiceError('already-exists', `${name} already contains a store, and a restore never writes into one`, {
    fix: 'Name a new, empty database in access.store.url and restore into it; the old one stays as it is.',
  })
}
