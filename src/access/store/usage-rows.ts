import assert from 'node:assert/strict'
import { ServiceError } from '../../core/error.ts'
import type { SqlReader, SqlRow, SqlValue, SqlWriter } from '../../platform/db/sql.ts'
import type { UsageRow } from './model.ts'
import { type TableRows, textCheck } from './rows.ts'
import { LAST_USED_TABLE } from './tables.ts'

/** Rows per statement: 7 values each, far below the limits of the engines. */
const BATCH_ROWS = 100

export const CREATE_USAGE = [
  `CREATE TABLE usage_hours (
    subscription_id TEXT NOT NULL, hour BIGINT NOT NULL, interface TEXT NOT NULL,
    calls BIGINT NOT NULL, units BIGINT NOT NULL, refused BIGINT NOT NULL, row_check BIGINT NOT NULL,
    PRIMARY KEY (subscription_id, hour, interface))`,
  'CREATE INDEX usage_hours_by_hour ON usage_hours (hour)',
]

const LIST = 'subscription_id, hour, interface, calls, units, refused, row_check'

/**
 * Two processes may write the same row, so the database adds. The check is therefore additive: a hash of the key plus odd multiples of the counts,
 * so that every single changed bit is detected.
 */
const ADD = `ON CONFLICT (subscription_id, hour, interface) DO UPDATE SET
  calls = usage_hours.calls + excluded.calls,
  units = usage_hours.units + excluded.units,
  refused = usage_hours.refused + excluded.refused,
  row_check = usage_hours.row_check + 3 * excluded.calls + 5 * excluded.units + 7 * excluded.refused`

function usageCheck({ subscriptionId, hour, interface: interfaceName, calls, units, refused }: UsageRow): number {
  return (
    textCheck('usage_hours', JSON.stringify([subscriptionId, hour, interfaceName])) +
    3 * calls +
    5 * units +
    7 * refused
  )
}

export async function addUsage(tx: SqlWriter, rows: readonly UsageRow[]): Promise<void> {
  const merged = mergeRows(rows)
  for (let from = 0; from < merged.length; from += BATCH_ROWS) {
    const batch = merged.slice(from, from + BATCH_ROWS)
    const placeholders = batch.map(() => '(?, ?, ?, ?, ?, ?, ?)').join(', ')
    const values = batch.flatMap((row): SqlValue[] => [...Object.values(row), usageCheck(row)])
    await tx.run(`INSERT INTO usage_hours (${LIST}) VALUES ${placeholders} ${ADD}`, values)
  }
}

export async function setLastUsed(
  tx: SqlWriter,
  rows: TableRows,
  lastUsed: ReadonlyMap<string, number>,
): Promise<void> {
  const of = rows(LAST_USED_TABLE)
  for (const [tokenId, at] of [...lastUsed].toSorted(byFirst)) {
    await tx.run(`${of.upsert} WHERE excluded.at > last_used.at`, of.encode({ tokenId, at }))
  }
}

export async function readUsage(
  on: SqlReader,
  filter: { subscriptionId?: string; fromMs?: number; toMs?: number },
): Promise<UsageRow[]> {
  const conditions: string[] = []
  const values: SqlValue[] = []
  const add = (condition: string, value: SqlValue | undefined) => {
    if (value === undefined) return
    conditions.push(condition)
    values.push(value)
  }
  add('subscription_id = ?', filter.subscriptionId)
  add('hour >= ?', filter.fromMs)
  add('hour < ?', filter.toMs)
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  const found = await on.rows(`${SELECT_USAGE} ${where} ORDER BY hour, subscription_id, interface`, values)
  return found.map(decodeUsage)
}

export async function readUnitsSince(on: SqlReader, fromMs: number): Promise<Map<string, number>> {
  const found = await on.rows(
    'SELECT subscription_id, CAST(SUM(units) AS BIGINT) FROM usage_hours WHERE hour >= ? GROUP BY subscription_id',
    [fromMs],
  )
  return new Map(found.map(([id, units]) => [id as string, units as number]))
}

/** Hours before `beforeMs` that have usage, oldest first. */
export async function readUsageHours(on: SqlReader, beforeMs: number, hoursMax: number): Promise<number[]> {
  const found = await on.rows('SELECT DISTINCT hour FROM usage_hours WHERE hour < ? ORDER BY hour LIMIT ?', [
    beforeMs,
    hoursMax,
  ])
  return found.map(([hour]) => hour as number)
}

export async function deleteUsageHour(tx: SqlWriter, hour: number): Promise<void> {
  await tx.run('DELETE FROM usage_hours WHERE hour = ?', [hour])
}

export const SELECT_USAGE = `SELECT ${LIST} FROM usage_hours`

export function usageMatchesCheck(row: SqlRow): boolean {
  return usageCheck(toUsage(row)) === row.at(-1)
}

export function decodeUsage(row: SqlRow): UsageRow {
  if (usageMatchesCheck(row)) return toUsage(row)
  throw new ServiceError('store-corrupt', `usage of ${String(row[0])} at ${String(row[1])} does not match its check`)
}

function toUsage(row: SqlRow): UsageRow {
  const [subscriptionId, hour, interfaceName, calls, units, refused] = row as [
    string,
    number,
    UsageRow['interface'],
    number,
    number,
    number,
  ]
  return { subscriptionId, hour, interface: interfaceName, calls, units, refused }
}

/** One row per key, sorted by key, so that two machines that write at once cannot deadlock. */
function mergeRows(rows: readonly UsageRow[]): UsageRow[] {
  const merged = new Map<string, UsageRow>()
  for (const row of rows) {
    const { subscriptionId, hour, interface: interfaceName } = row
    const key = JSON.stringify([subscriptionId, hour, interfaceName])
    const sum = merged.get(key) ?? { calls: 0, units: 0, refused: 0 }
    const counts = { calls: sum.calls + row.calls, units: sum.units + row.units, refused: sum.refused + row.refused }
    // Negative when calls are refunded that were written before.
    for (const count of Object.values(counts)) assert(Number.isSafeInteger(count), 'usage counts are integers')
    merged.set(key, { subscriptionId, hour, interface: interfaceName, ...counts })
  }
  return [...merged].toSorted(byFirst).map(([, row]) => row)
}

function byFirst([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : Number(a > b)
}
