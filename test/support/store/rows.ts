import type { RecordKind, Records } from '../../../src/access/store/model.ts'
import { createTableRows, type Rows } from '../../../src/access/store/rows.ts'
import { RECORD_TABLES } from '../../../src/access/store/tables.ts'
import type { SqlDatabase } from '../../../src/platform/db/sql.ts'

const BATCH_ROWS = 500

/** Inserts many records at once, bypassing the changes of the store and its audit log. */
export async function insertRecords<K extends RecordKind>(
  database: SqlDatabase,
  kind: K,
  records: readonly Records[K][],
): Promise<void> {
  const of = createTableRows(database)(RECORD_TABLES[kind]) as unknown as Rows<Records[K]>
  const [head = '', one = ''] = of.insert.split('VALUES')
  for (let from = 0; from < records.length; from += BATCH_ROWS) {
    const batch = records.slice(from, from + BATCH_ROWS).map(of.encode)
    await database.change((tx) => tx.run(`${head} VALUES ${batch.map(() => one).join(', ')}`, batch.flat()))
  }
}
