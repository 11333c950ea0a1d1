import { ulidTime } from '../../core/ulid.ts'
import type { SqlWriter } from '../../platform/db/sql.ts'
import type { TableRows } from './rows.ts'
import type { UsageMark } from './store.ts'
import { MIRROR_TABLE } from './tables.ts'

/**
 * The number of the last batch of usage of each spool, in the table that records the end of other files of state folders. With a table of its own,
 * processes of the version before could not use the same store, and backups of it could not be restored.
 */
const PREFIX = 'usage:'

/** Records the batch as written. False if it was written before. Waits for a transaction of another connection that writes the same batch. */
export async function advanceUsageMark(tx: SqlWriter, rows: TableRows, { spool, seq }: UsageMark): Promise<boolean> {
  const of = rows(MIRROR_TABLE)
  const mirror = `${PREFIX}${spool}`
  const none = { mirror, seq: 0, bytes: 0, remadeAt: null }
  // The update changes nothing: it locks the row and returns its last committed content.
  const [row] = await tx.rows(
    `${of.insert} ON CONFLICT (mirror) DO UPDATE SET mirror = excluded.mirror RETURNING content, row_check`,
    of.encode(none),
  )
  const last = row === undefined ? none : of.decode(row)
  if (seq <= last.seq) return false
  await tx.run(of.upsert, of.encode({ ...last, seq }))
  return true
}

/** Deletes the marks of spools that began before `beforeMs`. A process that still runs makes its mark again. */
export async function deleteUsageMarks(tx: SqlWriter, beforeMs: number): Promise<void> {
  const before = `${PREFIX}${ulidTime(beforeMs)}`
  await tx.run(`DELETE FROM ${MIRROR_TABLE.name} WHERE mirror LIKE ? AND mirror < ?`, [`${PREFIX}%`, before])
}
