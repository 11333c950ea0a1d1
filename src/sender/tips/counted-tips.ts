import type { SqlReader, SqlWriter } from '../../platform/db/sql.ts'

/** The columns of the table `recent`, in their order. */
const COLUMNS = ['signature', 'state', 'day', 'account', 'payer', 'lamports', 'at_ms'] as const
const FIRST_NUMBER = COLUMNS.indexOf('lamports')
/** Longer than the journal is read back, and than a transaction that is counted as accepted is followed. */
const LISTED_MS = 900_000
/** No more than a journal is read back for: the largest `receiptsMax`. */
const ROWS_MAX = 1_000_000

/** A row of `recent` as a backup has it: the values of the columns. */
export type CountedTip = readonly (string | number)[]

/** Which transactions the sums of the ledger include: without it the journal, which is read back at a start, is counted again. */
export type CountedTips = {
  /** The time of the newest event that is counted. */
  readonly countedMs: number
  /** The transactions of LISTED_MS before it. */
  readonly recent: readonly CountedTip[]
}

/** Undefined for a ledger that has counted nothing itself. */
export async function listCountedTips(database: SqlReader, nowMs: number): Promise<CountedTips | undefined> {
  const [mark] = await database.rows("SELECT value FROM marks WHERE name = 'counted'")
  if (mark === undefined) return undefined
  const countedMs = Number(mark[0])
  // The last event has a time of the future where the clock was ahead.
  const fromMs = Math.min(countedMs, nowMs) - LISTED_MS
  const rows = await database.rows(
    `SELECT ${COLUMNS.join(', ')} FROM recent WHERE at_ms >= ? ORDER BY at_ms DESC LIMIT ${ROWS_MAX}`,
    [fromMs],
  )
  return { countedMs, recent: rows.map((row) => row as (string | number)[]) }
}

/** Puts them into a new ledger. */
export async function putCountedTips(tx: SqlWriter, { countedMs, recent }: CountedTips): Promise<void> {
  const values = COLUMNS.map(() => '?').join(', ')
  for (const row of recent) await tx.run(`INSERT INTO recent (${COLUMNS.join(', ')}) VALUES (${values})`, row)
  await tx.run("INSERT INTO marks (name, value) VALUES ('counted', ?)", [countedMs])
}

/** Whether a value of a backup is such a row. */
export function isCountedTip(value: unknown): value is CountedTip {
  if (!Array.isArray(value) || value.length !== COLUMNS.length) return false
  return value.every((one, at) => (at < FIRST_NUMBER ? typeof one === 'string' : Number.isSafeInteger(one)))
}
