import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { CHAIN_START } from '../../../access/audit/line.ts'
import { BACKUP_FORMAT, createBackupWriter } from '../../../access/backup/format.ts'
import type { BackupFacts, BackupSummary } from '../../../access/backup/summary.ts'
import type { Settings } from '../config/settings.ts'
import { REPORT_FILE } from '../services/shreds.ts'
import { sqliteStoreFile } from './open-store.ts'
import { hasKeyFiles, SEQ_FILE, TIPS_FILE } from './state-content.ts'

/** The first version of the tables: every version restores a backup that has no rows. */
const SCHEMA_VERSION = 1

/**
 * Whether this is the state folder of a service that opens no access store, such as the standalone sender: it has content that cannot be made again, and
 * never had a store. An audit log without its store is a loss, which is not hidden.
 */
export function isWithoutStore({ config, stateDir }: Pick<Settings, 'config' | 'stateDir'>): boolean {
  const { store } = config.access
  if (store.engine !== 'sqlite') return false
  if (existsSync(sqliteStoreFile(stateDir, store.file)) || existsSync(join(stateDir, 'audit.log'))) return false
  return hasKeyFiles(stateDir) || [SEQ_FILE, TIPS_FILE, REPORT_FILE].some((path) => existsSync(join(stateDir, ...path)))
}

/** Writes a backup of the content of a state folder alone. */
export async function writeBackupWithoutStore(
  put: (text: string) => Promise<void>,
  { madeAtMs, version, extras }: BackupFacts,
): Promise<BackupSummary> {
  const header = {
    format: BACKUP_FORMAT,
    schema_version: SCHEMA_VERSION,
    revision: 0,
    audit: CHAIN_START,
    made_at: new Date(madeAtMs).toISOString(),
    version,
    store: false as const,
  }
  const writer = createBackupWriter(header, put)
  await writer.begin()
  for await (const { kind, value } of extras?.([]) ?? []) await writer.add(kind, value)
  return writer.end()
}
