import type { SqlReader, SqlWriter } from '../../platform/db/sql.ts'

/** The columns of the table `days`, in their order. */
const COLUMNS = [
  'day',
  'account',
  'payer',
  'accepted',
  'landed',
  'failed',
  'expired',
  'offered_lamports',
  'tip_lamports',
] as const

/** A row of the ledger as a backup has it: the values of the columns. */
export type TipDay = readonly (string | number)[]

export async function listTipDays(database: SqlReader): Promise<TipDay[]> {
  const rows = await database.rows(`SELECT ${COLUMNS.join(', ')} FROM days ORDER BY day, account, payer`)
  return rows.map((row) => row as (string | number)[])
}

/** Puts the rows of a backup into a new ledger. */
export async function putTipDays(tx: SqlWriter, days: readonly TipDay[]): Promise<void> {
  const values = COLUMNS.map(() => '?').join(', ')
  for (const day of days) await tx.run(`INSERT INTO days (${COLUMNS.join(', ')}) VALUES (${values})`, [...day])
}

/** Whether a value of a backup is such a row. */
export function isTipDay(value: unknown): value is TipDay {
  if (!Array.isArray(value) || value.length !== COLUMNS.length) return false
  return value.every((one, at) => (at < 3 ? typeof one === 'string' : Number.isSafeInteger(one)))
}
