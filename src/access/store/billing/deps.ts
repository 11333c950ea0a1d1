import type { SqlDatabase, SqlWriter } from '../../../platform/db/sql.ts'
import type { TableRows } from '../rows.ts'
import type { AccessTransaction, AuditEntry, ChangeContext } from '../store.ts'

export type BillingTablesDeps = {
  readonly database: SqlDatabase
  readonly rows: TableRows
  /** A change of the operator, with its audit line. */
  change<T>(
    context: ChangeContext,
    work: (records: AccessTransaction, tx: SqlWriter) => Promise<{ audit: AuditEntry; result: T }>,
  ): Promise<T>
}
