import assert from 'node:assert/strict'
import { ServiceError } from '../../core/error.ts'
import type { SqlRow, SqlValue, SqlWriter } from '../../platform/db/sql.ts'
import type { UsageCounts } from './model.ts'
import { textCheck } from './rows.ts'

/** A table of counts, to which processes add: the columns of its key, then `calls`, `units`, `refused` and `row_check`. */
export type CountTable = { readonly name: string; readonly key: readonly string[] }

export type CountedRow = { readonly key: readonly (string | number)[]; readonly counts: UsageCounts }

/** Rows per statement: 8 values each, far below the limits of the engines. */
const BATCH_ROWS = 100

/**
 * Two processes may write the same row, so the database adds. The check is therefore additive: a hash of the key plus odd multiples of the counts,
 * so that every single changed bit is detected.
 */
export async function addCounts(tx: SqlWriter, table: CountTable, rows: readonly CountedRow[]): Promise<void> {
  const { name, key } = table
  const merged = mergeRows(rows)
  const columns = [...key, 'calls', 'units', 'refused', 'row_check']
  const one = `(${columns.map(() => '?').join(', ')})`
  const add = `ON CONFLICT (${key.join(', ')}) DO UPDATE SET
  calls = ${name}.calls + excluded.calls,
  units = ${name}.units + excluded.units,
  refused = ${name}.refused + excluded.refused,
  row_check = ${name}.row_check + 3 * excluded.calls + 5 * excluded.units + 7 * excluded.refused`
  for (let from = 0; from < merged.length; from += BATCH_ROWS) {
    const batch = merged.slice(from, from + BATCH_ROWS)
    const values = batch.flatMap((row): SqlValue[] => {
      const { calls, units, refused } = row.counts
      return [...row.key, calls, units, refused, checkOf(table, row)]
    })
    await tx.run(`INSERT INTO ${name} (${columns.join(', ')}) VALUES ${batch.map(() => one).join(', ')} ${add}`, values)
  }
}

export function selectCounts({ name, key }: CountTable): string {
  return `SELECT ${key.join(', ')}, calls, units, refused, row_check FROM ${name}`
}

export function countMatchesCheck(table: CountTable, row: SqlRow): boolean {
  return checkOf(table, toCounted(table, row)) === row.at(-1)
}

export function decodeCounts(table: CountTable, row: SqlRow): CountedRow {
  if (countMatchesCheck(table, row)) return toCounted(table, row)
  throw new ServiceError('store-corrupt', `usage of ${String(row[0])} at ${String(row[1])} does not match its check`)
}

function checkOf({ name }: CountTable, { key, counts: { calls, units, refused } }: CountedRow): number {
  return textCheck(name, JSON.stringify(key)) + 3 * calls + 5 * units + 7 * refused
}

function toCounted({ key }: CountTable, row: SqlRow): CountedRow {
  const [calls, units, refused] = row.slice(key.length) as [number, number, number]
  return { key: row.slice(0, key.length) as (string | number)[], counts: { calls, units, refused } }
}

/** One row per key, sorted by key, so that two machines that write at once cannot deadlock. */
function mergeRows(rows: readonly CountedRow[]): CountedRow[] {
  const merged = new Map<string, CountedRow>()
  for (const { key, counts } of rows) {
    const text = JSON.stringify(key)
    const sum = sumCounts(merged.get(text)?.counts, counts)
    // Negative when calls are refunded that were written before.
    for (const count of Object.values(sum)) assert(Number.isSafeInteger(count), 'usage counts are integers')
    merged.set(text, { key, counts: sum })
  }
  return [...merged].toSorted(([a], [b]) => (a < b ? -1 : Number(a > b))).map(([, row]) => row)
}

export function sumCounts(a: UsageCounts | undefined, b: UsageCounts): UsageCounts {
  return {
    calls: (a?.calls ?? 0) + b.calls,
    units: (a?.units ?? 0) + b.units,
    refused: (a?.refused ?? 0) + b.refused,
  }
}
