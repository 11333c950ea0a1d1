import { join } from 'node:path'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import type { SqlDatabase, SqlWriter } from '../../platform/db/sql.ts'
import { createSqliteFile, openSqlite } from '../../platform/db/sqlite.ts'
import { sqliteFileExists } from '../../platform/db/sqlite-file.ts'

export const LEDGER_FILE = 'tips.db'

/**
 * `days` has one row per day (UTC), tip account and payer. `recent` has the transactions of the last hour, so that none is counted twice.
 * `marks` has the time up to which everything is counted.
 */
const TABLES = [
  `CREATE TABLE days (
    day TEXT NOT NULL, account TEXT NOT NULL, payer TEXT NOT NULL,
    accepted INTEGER NOT NULL, landed INTEGER NOT NULL, failed INTEGER NOT NULL, expired INTEGER NOT NULL,
    offered_lamports INTEGER NOT NULL, tip_lamports INTEGER NOT NULL,
    PRIMARY KEY (day, account, payer)) WITHOUT ROWID`,
  `CREATE TABLE recent (
    signature TEXT PRIMARY KEY, state TEXT NOT NULL, day TEXT NOT NULL, account TEXT NOT NULL, payer TEXT NOT NULL,
    lamports INTEGER NOT NULL, at_ms INTEGER NOT NULL) WITHOUT ROWID`,
  'CREATE INDEX recent_at ON recent (at_ms)',
  'CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID',
]

/** Creates the ledger at this path. */
export async function createLedgerFile(
  file: string,
  deps: { readonly clock: Clock; readonly random: Random },
  fill: (tx: SqlWriter) => Promise<void> = async () => {},
): Promise<void> {
  await createSqliteFile({ file }, deps, (database) =>
    database.change(async (tx) => {
      for (const table of TABLES) await tx.run(table)
      await fill(tx)
    }),
  )
}

/** Opens the ledger of a folder, and creates it if needed. */
export async function openLedgerFile(
  folder: string,
  deps: { readonly clock: Clock; readonly random: Random },
): Promise<SqlDatabase> {
  const file = join(folder, LEDGER_FILE)
  if (!(await sqliteFileExists(file))) await createLedgerFile(file, deps)
  return openSqlite({ file }, deps)
}

/** Opens the ledger that a process has opened before. One that is missing now is not replaced by an empty one. */
export function openExistingLedger(folder: string, deps: { readonly clock: Clock }): Promise<SqlDatabase> {
  return openSqlite({ file: join(folder, LEDGER_FILE) }, deps)
}

/** Opens the ledger to read it; undefined where there is none. */
export async function openLedgerToRead(
  folder: string,
  deps: { readonly clock: Clock },
): Promise<SqlDatabase | undefined> {
  const file = join(folder, LEDGER_FILE)
  return (await sqliteFileExists(file)) ? openSqlite({ file }, deps) : undefined
}
