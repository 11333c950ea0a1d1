import type { SqlReader } from '../../platform/db/sql.ts'
import { readAuditLines } from '../audit/rows.ts'
import { BILLING_TABLES, type BillingRow } from '../store/billing/tables.ts'
import { readMeta } from '../store/meta.ts'
import type { StoreName, TableRows } from '../store/rows.ts'
import { LAST_USED_TABLE, RECORD_KINDS, RECORD_TABLES, SHARED_KEY_TABLE, type Table } from '../store/tables.ts'
import { decodeMethodUsage, decodeUsage, SELECT_METHOD_USAGE, SELECT_USAGE } from '../store/usage-rows.ts'
import { BACKUP_FORMAT, createBackupWriter } from './format.ts'
import type { BackupFacts, BackupSummary } from './summary.ts'

/** Writes one state of the store as a backup. Checks each row as it is read, and fails for a damaged store. */
export async function writeBackup(
  view: SqlReader,
  put: (text: string) => Promise<void>,
  context: BackupFacts & { readonly rows: TableRows; readonly schemaVersion: number; readonly store: StoreName },
): Promise<BackupSummary> {
  const { rows, schemaVersion, store } = context
  const meta = await readMeta(view, rows, { schemaVersion, store })
  const writer = createBackupWriter(
    {
      format: BACKUP_FORMAT,
      schema_version: meta.schemaVersion,
      revision: meta.revision,
      audit: { seq: meta.auditSeq, hash: meta.auditHash },
      made_at: new Date(context.madeAtMs).toISOString(),
      version: context.version,
    },
    put,
  )
  await writer.begin()
  for (const kind of RECORD_KINDS) {
    const of = rows(RECORD_TABLES[kind] as Table<{ revision: number }>)
    for await (const page of view.pages(of.select('ORDER BY id')))
      for (const row of page) await writer.add(kind, of.decode(row))
  }
  for await (const line of readAuditLines(view, 1)) await writer.add('audit', line)
  for await (const page of view.pages(`${SELECT_USAGE} ORDER BY hour, subscription_id, interface`))
    for (const row of page) await writer.add('usage', decodeUsage(row))
  for await (const page of view.pages(`${SELECT_METHOD_USAGE} ORDER BY day, subscription_id, interface, method`))
    for (const row of page) await writer.add('usage_methods', decodeMethodUsage(row))
  for (const table of BILLING_TABLES) {
    const of = rows(table as Table<BillingRow['row']>)
    for await (const page of view.pages(of.select('')))
      for (const row of page) await writer.add(table.name as BillingRow['kind'], of.decode(row))
  }
  const lastUsed = rows(LAST_USED_TABLE)
  for await (const page of view.pages(lastUsed.select('ORDER BY token_id')))
    for (const row of page) await writer.add('last_used', lastUsed.decode(row))
  const shared = rows(SHARED_KEY_TABLE)
  const sharedKeys = (await view.rows(shared.select('ORDER BY purpose'))).map((row) => shared.decode(row))
  for await (const { kind, value } of context.extras?.(sharedKeys) ?? []) await writer.add(kind, value)
  return writer.end()
}
