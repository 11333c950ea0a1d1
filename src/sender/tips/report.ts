import type { SqlReader } from '../../platform/db/sql.ts'
import { LEDGER_LAMPORTS_MAX } from './lamports.ts'

export type TipGroup = 'day' | 'account' | 'payer' | 'total'

export type TipRow = {
  /** The day, tip account or payer; `total` for all together. */
  readonly group: string
  readonly accepted: number
  readonly landed: number
  readonly failed: number
  readonly expired: number
  /** Tips of all accepted transactions. */
  readonly offeredLamports: number
  /** Tips that were paid: of transactions that landed and succeeded. */
  readonly tipLamports: number
}

const COLUMNS: Readonly<Record<TipGroup, string>> = { day: 'day', account: 'account', payer: 'payer', total: "'total'" }

/** Sums the days from `fromMs` to `toMs`, both included, in UTC. Days are in order; accounts and payers by their tips. */
export async function readTips(
  database: SqlReader,
  { fromMs, toMs, by }: { readonly fromMs: number; readonly toMs: number; readonly by: TipGroup },
): Promise<TipRow[]> {
  const rows = await database.rows(
    `SELECT ${COLUMNS[by]}, sum(accepted), sum(landed), sum(failed), sum(expired), ${sumOf('offered_lamports')}, ${sumOf('tip_lamports')}
     FROM days WHERE day >= ? AND day <= ? GROUP BY 1 ORDER BY ${by === 'day' ? '1' : '7 DESC, 1'}`,
    [dayOf(fromMs), dayOf(toMs)],
  )
  return rows.map(([group, ...sums]) => {
    const [accepted = 0, landed = 0, failed = 0, expired = 0, offeredLamports = 0, tipLamports = 0] = sums.map(Number)
    return { group: String(group), accepted, landed, failed, expired, offeredLamports, tipLamports }
  })
}

/** A sum that stops at the limit. `total` is exact up to it, and does not fail above it as `sum` does. */
function sumOf(column: string): string {
  return `min(total(min(${column}, ${LEDGER_LAMPORTS_MAX})), ${LEDGER_LAMPORTS_MAX})`
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
