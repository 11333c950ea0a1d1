import { tableOf } from '../schema.ts'
import { ACCOUNTS_RECENT, BASE_SCHEMA } from './ddl.ts'

/**
 * The accounts table has a row for each account that was ever written, and finding the rows that a batch replaces means reading all its keys. So a batch
 * writes into the small table of recent states, and their final ones are moved to the accounts table once there are many of them. Customers see both tables
 * as one, in which a recent state hides that of the accounts table.
 */

const [SETTLED, RECENT] = [`${BASE_SCHEMA}.accounts`, `${BASE_SCHEMA}.${ACCOUNTS_RECENT}`]

/** Accounts that a batch writes, roughly. */
const BATCH_ROWS = 4096
/** Below this, reading the recent states takes a batch a few milliseconds. */
const RECENT_ROWS_MIN = 65_536

/**
 * Final states in the recent table at which they are moved. A batch reads the keys of the recent table, and its share of a move reads those of the accounts
 * table: the geometric mean makes both equal, so a batch costs the root of what reading the accounts table costs.
 */
export function recentRowsMaxOf(settledRows: number): number {
  return Math.max(RECENT_ROWS_MIN, Math.sqrt(settledRows * BATCH_ROWS))
}

export const COUNT_SETTLED = `SELECT count(*) FROM ${SETTLED}`

export function countRecent(finalizedSlot: number): string {
  return `SELECT count(*) FROM ${RECENT} WHERE slot <= ${finalizedSlot}`
}

/**
 * A version without the recent table writes to the accounts table. What that has is newer than the recent states from before. The slot of the oldest one
 * leaves out the parts of the accounts table that are older still.
 */
export const DELETE_OUTDATED = `DELETE FROM ${RECENT} r USING ${SETTLED} s
  WHERE s.slot >= (SELECT coalesce(min(slot), 0) FROM ${RECENT}) AND s.pubkey = r.pubkey
  AND (s.slot > r.slot OR (s.slot = r.slot AND s.write_version > r.write_version))`

/** Moves the final states. A state that a later block may restore is not touched: it is in a table of its own. */
export function settleAccounts(finalizedSlot: number): string[] {
  const columns = tableOf('accounts').columns.map(({ name }) => name)
  const final = `FROM ${RECENT} WHERE slot <= ${finalizedSlot}`
  return [
    `DELETE FROM ${SETTLED} WHERE pubkey IN (SELECT pubkey ${final})`,
    `INSERT INTO ${SETTLED} SELECT ${columns.join(', ')} ${final}`,
    `DELETE ${final}`,
  ]
}
