import type { SqlValue, SqlWriter } from '../../platform/db/sql.ts'
import { createUnpacker } from './rows.ts'
import { RECORD_TABLES } from './tables.ts'

/** Rows of one statement: on PostgreSQL each statement is a round trip. */
const BATCH_ROWS = 256

/** A released migration, which never changes: the end of a subscription becomes a column, so that expired ones are found without reading every record. */
export async function addValidUntil(tx: SqlWriter): Promise<void> {
  await tx.run('ALTER TABLE subscriptions ADD COLUMN valid_until BIGINT')
  const unpack = createUnpacker(RECORD_TABLES.subscriptions)
  const ends: [id: string, validUntil: number][] = []
  for await (const page of tx.pages("SELECT content FROM subscriptions WHERE content NOT LIKE '%,null]'")) {
    for (const [content] of page) {
      const { id, validUntil } = unpack(String(content))
      if (validUntil !== null) ends.push([id, validUntil])
    }
  }
  for (let from = 0; from < ends.length; from += BATCH_ROWS) await writeEnds(tx, ends.slice(from, from + BATCH_ROWS))
}

async function writeEnds(tx: SqlWriter, ends: readonly (readonly [id: string, validUntil: number])[]): Promise<void> {
  const cases = ends.map(() => 'WHEN ? THEN CAST(? AS BIGINT)').join(' ')
  const ids = ends.map(() => '?').join(', ')
  const values: SqlValue[] = [...ends.flat(), ...ends.map(([id]) => id)]
  await tx.run(`UPDATE subscriptions SET valid_until = CASE id ${cases} END WHERE id IN (${ids})`, values)
}
