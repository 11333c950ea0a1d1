import assert from 'node:assert/strict'
import { ServiceError } from '../../core/error.ts'
import type { SqlRow, SqlValue, SqlWriter } from '../../platform/db/sql.ts'
import type { UsageCounts } from './model.ts'
import { textCheck } from './rows.ts'

/** What is counted, with its factor in the check of a row. A zero adds nothing: rows from before a column was added stay valid. */
const FACTORS = { calls: 3, units: 5, refused: 7, bytes: 11 } as const

type CountName = keyof typeof FACTORS

/** A table of counts, to which processes add: the columns of its key, then those of its counts, then `row_check`. */
export type CountTable = {
  readonly name: string
  readonly key: readonly string[]
  readonly counts: readonly CountName[]
}

/** Bytes only where they are counted. */
export type Counts = UsageCounts & { readonly bytes?: number }

export type CountedRow = { readonly key: readonly (string | number)[]; readonly counts: Counts }

/** Rows per statement: 9 values each at most, far below the limits of the engines. */
const BATCH_ROWS = 100

/**
 * Two processes may write the same row, so the database adds. The check is therefore additive: a hash of the key plus odd multiples of the counts,
 * so that every single changed bit is detected.
 */
export async function addCounts(tx: SqlWriter, table: CountTable, rows: readonly CountedRow[]): Promise<void> {
  const { name, key } = table
  const merged = mergeRows(rows)
  const columns = [...key, ...table.counts, 'row_check']
  const one = `(${columns.map(() => '?').join(', ')})`
  const sums = table.counts.map((count) => `${count} = ${name}.${count} + excluded.${count}`)
  const added = table.counts.map((count) => `${FACTORS[count]} * excluded.${count}`)
  const add = `ON CONFLICT (${key.join(', ')}) DO UPDATE SET
  ${sums.join(',\n  ')},
  row_check = ${name}.row_check + ${added.join(' + ')}`
  for (let from = 0; from < merged.length; from += BATCH_ROWS) {
    const batch = merged.slice(from, from + BATCH_ROWS)
    const values = batch.flatMap((row): SqlValue[] => [
      ...row.key,
      ...table.counts.map((count) => row.counts[count] ?? 0),
      checkOf(table, row),
    ])
    await tx.run(`INSERT INTO ${name} (${columns.join(', ')}) VALUES ${batch.map(() => one).join(', ')} ${add}`, values)
  }
}

export function selectCounts({ name, key, counts }: CountTable): string {
  return `SELECT ${[...key, ...counts].join(', ')}, row_check FROM ${name}`
}

export function countMatchesCheck(table: CountTable, row: SqlRow): boolean {
  return checkOf(table, toCounted(table, row)) === row.at(-1)
}

export function decodeCounts(table: CountTable, row: SqlRow): CountedRow {
  if (countMatchesCheck(table, row)) return toCounted(table, row)
  throw new ServiceError('store-corrupt', `usage of ${String(row[0])} at ${String(row[1])} does not match its check`)
}

function checkOf(table: CountTable, { key, counts }: CountedRow): number {
  return table.counts.reduce(
    (sum, count) => sum + FACTORS[count] * (counts[count] ?? 0),
    textCheck(table.name, JSON.stringify(key)),
  )
}

function toCounted({ key, counts }: CountTable, row: SqlRow): CountedRow {
  const values = Object.fromEntries(counts.map((count, at) => [count, row[key.length + at]]))
  return { key: row.slice(0, key.length) as (string | number)[], counts: values as Counts }
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

/** The sum of both; with bytes where one of them has some. */
export function sumCounts(a: Counts | undefined, b: Counts): Counts {
  const sum = {
    calls: (a?.calls ?? 0) + b.calls,
    units: (a?.units ?? 0) + b.units,
    refused: (a?.refused ?? 0) + b.refused,
  }
  if (a?.bytes === undefined && b.bytes === undefined) return sum
  return { ...sum, bytes: (a?.bytes ?? 0) + (b.bytes ?? 0) }
}
