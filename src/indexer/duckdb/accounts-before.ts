import type { DuckAppender } from '../../platform/db/duckdb-appender.ts'
import { positionTexts } from '../../platform/db/duckdb-texts.ts'
import { type BatchRows, columnAt, rowsIn } from '../ingest/batch-rows.ts'
import type { SlotRange } from '../ingest/slot-ranges.ts'
import { tableOf } from '../schema.ts'
import type { WriteBatch } from '../store/store.ts'
import { ACCOUNTS_BEFORE, ACCOUNTS_RECENT, BASE_SCHEMA } from './ddl.ts'

/**
 * Customers see one row for each account. A block that is not final may be replaced, and with it the rows that it wrote: the states before them are kept
 * until it is final. All statements run in the transaction of the write, and read the small table of recent states only: the accounts table grows with
 * the chain. `settled-accounts.ts` moves final states there.
 */

const PUBKEY_AT = columnAt('accounts', 'pubkey')
const SETTLED = `${BASE_SCHEMA}.accounts`
const [RECENT, BEFORE] = [`${BASE_SCHEMA}.${ACCOUNTS_RECENT}`, `${BASE_SCHEMA}.${ACCOUNTS_BEFORE}`]
const COLUMNS = tableOf('accounts').columns.map(({ name }) => name)
/** Keys of one statement, to keep the statements small. */
const KEYS_MAX = 1000

/** Before the rows of slots are written again: deletes what the first write left, of the accounts that come again. */
export function deleteRepeated({ rows, range }: WriteBatch): string[] {
  const keys = Array.from(rowsIn(rows, 'accounts'), (row) => `'${String(row[PUBKEY_AT]).replaceAll("'", "''")}'`)
  const statements: string[] = []
  for (let from = 0; from < keys.length; from += KEYS_MAX) {
    const among = `pubkey IN (${keys.slice(from, from + KEYS_MAX).join(',')})`
    for (const table of [RECENT, BEFORE])
      statements.push(`DELETE FROM ${table} WHERE slot BETWEEN ${range.from} AND ${range.to} AND ${among}`)
  }
  return statements
}

/** After the rows of a batch are appended: removes the states that they replace, which are kept as long as a block of the batch may be replaced. */
export function replaceAccounts({ rows, range, finalizedSlot }: WriteBatch): string[] {
  if (rows.every(({ tables }) => tables.accounts.count === 0)) return []
  const written = `slot BETWEEN ${range.from} AND ${range.to}`
  const among = `pubkey IN (SELECT pubkey FROM ${RECENT} WHERE ${written})`
  const keep = `INSERT INTO ${BEFORE} SELECT ${COLUMNS.join(', ')}, ${range.to} FROM ${RECENT} WHERE slot < ${range.from} AND ${among}`
  return [...(finalizedSlot < range.to ? [keep] : []), `DELETE FROM ${RECENT} WHERE NOT (${written}) AND ${among}`]
}

/** Appends the states that a later block of the batch replaced. */
export function appendBefore(appender: DuckAppender, { texts, tables }: BatchRows, { to }: SlotRange): void {
  const { columns, count } = tables.accounts
  if (count === 0) return
  const replaced = { kind: 'u64', values: () => new BigUint64Array(count).fill(BigInt(to)) } as const
  using placed = positionTexts(texts.packed())
  appender.append([...columns, replaced], count, placed)
}

/**
 * Before the accounts from a slot on are deleted: writes the newest state before the slot of each of them. An account whose newest state is in the accounts
 * table has it there already.
 */
export function restoreAccounts(fromSlot: number): string[] {
  const deleted = [RECENT, SETTLED].map((table) => `SELECT pubkey FROM ${table} WHERE slot >= ${fromSlot}`)
  const settled = `SELECT 1 FROM ${SETTLED} s WHERE s.pubkey = b.pubkey AND s.slot >= b.slot AND s.slot < ${fromSlot}`
  const newest = 'row_number() OVER (PARTITION BY pubkey ORDER BY slot DESC, replaced_slot DESC) = 1'
  return [
    `INSERT INTO ${RECENT} SELECT ${COLUMNS.join(', ')} FROM ${BEFORE} b
       WHERE slot < ${fromSlot} AND pubkey IN (${deleted.join(' UNION ALL ')}) AND NOT EXISTS (${settled}) QUALIFY ${newest}`,
    `DELETE FROM ${RECENT} WHERE slot >= ${fromSlot}`,
    `DELETE FROM ${BEFORE} WHERE slot >= ${fromSlot} OR (pubkey, slot) IN (SELECT (pubkey, slot) FROM ${RECENT})`,
  ]
}

/** States that a final block replaced are not needed again. */
export function forgetAccounts(finalizedSlot: number): string {
  return `DELETE FROM ${BEFORE} WHERE replaced_slot <= ${finalizedSlot}`
}
