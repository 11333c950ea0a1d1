import type { SqlReader, SqlWriter } from '../../platform/db/sql.ts'
import { LEDGER_LAMPORTS_MAX, saturatedLamports } from './lamports.ts'

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

const FIRST_COUNT = COLUMNS.indexOf('accepted')
const FIRST_LAMPORTS = COLUMNS.indexOf('offered_lamports')

/** A row of the ledger as a backup has it: the values of the columns. */
export type TipDay = readonly (string | number)[]

export async function listTipDays(database: SqlReader): Promise<TipDay[]> {
  // Rows of earlier versions may be larger than the store can read.
  const columns = COLUMNS.map((name, at) => (at < FIRST_LAMPORTS ? name : `min(${name}, ${LEDGER_LAMPORTS_MAX})`))
  const rows = await database.rows(`SELECT ${columns.join(', ')} FROM days ORDER BY day, account, payer`)
  return rows.map((row) => row as (string | number)[])
}

/** Puts the rows of a backup into a new ledger. */
export async function putTipDays(tx: SqlWriter, days: readonly TipDay[]): Promise<void> {
  const values = COLUMNS.map(() => '?').join(', ')
  for (const day of days) {
    const row = day.map((one, at) => (at < FIRST_LAMPORTS ? one : saturatedLamports(Number(one))))
    await tx.run(`INSERT INTO days (${COLUMNS.join(', ')}) VALUES (${values})`, row)
  }
}

/** Whether a value of a backup is such a row. Backups of earlier versions may have lamports above the limit. */
export function isTipDay(value: unknown): value is TipDay {
  if (!Array.isArray(value) || value.length !== COLUMNS.length) return false
  return value.every((one, at) => {
    if (at < FIRST_COUNT) return typeof one === 'string'
    return at < FIRST_LAMPORTS ? Number.isSafeInteger(one) : Number.isInteger(one)
  })
}
