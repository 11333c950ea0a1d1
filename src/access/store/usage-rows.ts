import { DAY_MS } from '../../core/human-units.ts'
import type { SqlReader, SqlRow, SqlValue, SqlWriter } from '../../platform/db/sql.ts'
import { createTimeSlices, type TimeSlices } from '../../platform/process/time-slices.ts'
import { addCounts, type CountedRow, type CountTable, countMatchesCheck, decodeCounts, selectCounts } from './counts.ts'
import type { AddedUsage, HourUsage, MethodUsageRow, UsageRow, UsageSelection } from './model.ts'
import { type TableRows, writeRecords } from './rows.ts'
import { LAST_USED_TABLE } from './tables.ts'

/** Statements of released migrations: they never change. */
export const CREATE_USAGE = [
  `CREATE TABLE usage_hours (
    subscription_id TEXT NOT NULL, hour BIGINT NOT NULL, interface TEXT NOT NULL,
    calls BIGINT NOT NULL, units BIGINT NOT NULL, refused BIGINT NOT NULL, row_check BIGINT NOT NULL,
    PRIMARY KEY (subscription_id, hour, interface))`,
  'CREATE INDEX usage_hours_by_hour ON usage_hours (hour)',
]

export const CREATE_METHOD_USAGE = [
  `CREATE TABLE usage_methods (
    subscription_id TEXT NOT NULL, day BIGINT NOT NULL, interface TEXT NOT NULL, method TEXT NOT NULL,
    calls BIGINT NOT NULL, units BIGINT NOT NULL, refused BIGINT NOT NULL, row_check BIGINT NOT NULL,
    PRIMARY KEY (subscription_id, day, interface, method))`,
  'CREATE INDEX usage_methods_by_day ON usage_methods (day)',
]

/** Statements of a released migration: they never change. */
export const ADD_USAGE_BYTES = ['ALTER TABLE usage_hours ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0']

const HOURS: CountTable = {
  name: 'usage_hours',
  key: ['subscription_id', 'hour', 'interface'],
  counts: ['calls', 'units', 'refused', 'bytes'],
}
/** By day: a subscription uses a dozen methods, and hours would take a dozen times the space of `usage_hours`. */
const METHODS: CountTable = {
  name: 'usage_methods',
  key: ['subscription_id', 'day', 'interface', 'method'],
  counts: ['calls', 'units', 'refused'],
}

/** The tables of usage, for the check of all rows. */
export const USAGE_TABLES = [HOURS, METHODS].map((table) => ({
  name: table.name,
  selectAll: selectCounts(table),
  matchesCheck: (row: SqlRow) => countMatchesCheck(table, row),
}))

export const SELECT_USAGE = selectCounts(HOURS)
export const SELECT_METHOD_USAGE = selectCounts(METHODS)

/** Adds usage to the hours, and to the days of the methods it contains. */
export async function addUsage(tx: SqlWriter, rows: readonly AddedUsage[]): Promise<void> {
  await addCounts(
    tx,
    HOURS,
    rows.map((row) => ({ key: [row.subscriptionId, row.hour, row.interface], counts: row })),
  )
  await addCounts(tx, METHODS, rows.flatMap(methodsOf))
}

/** Adds rows of days as they are, for a restore. */
export async function addMethodUsage(tx: SqlWriter, rows: readonly MethodUsageRow[]): Promise<void> {
  await addCounts(
    tx,
    METHODS,
    rows.map((row) => ({ key: [row.subscriptionId, row.day, row.interface, row.method], counts: row })),
  )
}

function methodsOf({ subscriptionId, hour, interface: interfaceName, methods = {} }: AddedUsage): CountedRow[] {
  const day = dayOf(hour)
  return Object.entries(methods).map(([method, counts]) => ({
    key: [subscriptionId, day, interfaceName, method],
    counts,
  }))
}

/** The start of the UTC day. */
export function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS) * DAY_MS
}

export async function setLastUsed(
  tx: SqlWriter,
  rows: TableRows,
  lastUsed: ReadonlyMap<string, number>,
): Promise<void> {
  const of = rows(LAST_USED_TABLE)
  // Sorted, so that two machines that write at once cannot deadlock.
  const sorted = [...lastUsed].toSorted(([a], [b]) => (a < b ? -1 : Number(a > b)))
  await writeRecords(
    tx,
    of,
    sorted.map(([tokenId, at]) => ({ tokenId, at })),
    (count) => `${of.upsertOf(count)} WHERE excluded.at > last_used.at`,
  )
}

export type UsageFilter = { readonly subscriptionId?: string; readonly fromMs?: number; readonly toMs?: number }

export async function readUsage(on: SqlReader, filter: UsageFilter): Promise<UsageRow[]> {
  return (await readCounts(on, HOURS, filter)).map(decodeUsage)
}

/** Usage by method of the days that begin in the period. */
export async function readMethodUsage(on: SqlReader, filter: UsageFilter): Promise<MethodUsageRow[]> {
  return (await readCounts(on, METHODS, filter)).map(decodeMethodUsage)
}

async function readCounts(on: SqlReader, table: CountTable, filter: UsageFilter): Promise<SqlRow[]> {
  const conditions: string[] = []
  const values: SqlValue[] = []
  const add = (condition: string, value: SqlValue | undefined) => {
    if (value === undefined) return
    conditions.push(condition)
    values.push(value)
  }
  const [subscription, time, ...rest] = table.key as [string, string, ...string[]]
  add(`${subscription} = ?`, filter.subscriptionId)
  add(`${time} >= ?`, filter.fromMs)
  add(`${time} < ?`, filter.toMs)
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  return on.rows(`${selectCounts(table)} ${where} ORDER BY ${[time, subscription, ...rest].join(', ')}`, values)
}

/** In the order of an index, so that no statement sorts or reads more than a page. */
async function* readCountPages(on: SqlReader, table: CountTable, { fromMs, toMs, subscriptionId }: UsageSelection) {
  const [subscription, time] = table.key
  const [ofOne, values] = subscriptionId === undefined ? ['', []] : [`${subscription} = ? AND `, [subscriptionId]]
  const where = `WHERE ${ofOne}${time} >= ? AND ${time} < ?`
  yield* on.pages(`${selectCounts(table)} ${where} ORDER BY ${time}`, [...values, fromMs, toMs])
}

export async function* readUsagePages(on: SqlReader, selection: UsageSelection): AsyncGenerator<UsageRow[]> {
  for await (const page of readCountPages(on, HOURS, selection)) yield page.map(decodeUsage)
}

export async function* readMethodUsagePages(
  on: SqlReader,
  selection: UsageSelection,
): AsyncGenerator<MethodUsageRow[]> {
  for await (const page of readCountPages(on, METHODS, selection)) yield page.map(decodeMethodUsage)
}

/**
 * The sum of one hour over all subscriptions. Added up here and not by the database: SQLite runs in the event loop, and an hour has a row for each
 * subscription and interface.
 */
export async function readHourUsage(on: SqlReader, hour: number): Promise<HourUsage> {
  const sum = { calls: 0, units: 0, refused: 0 }
  const slices = createTimeSlices()
  for await (const page of on.pages('SELECT calls, units, refused FROM usage_hours WHERE hour = ?', [hour])) {
    for (const [calls, units, refused] of page as [number, number, number][]) {
      sum.calls += calls
      sum.units += units
      sum.refused += refused
    }
    if (slices.isSpent()) await slices.yield()
  }
  return sum
}

/**
 * The units of each subscription since `fromMs`. A database on another machine adds them up. SQLite runs in the event loop, and a month may have millions
 * of rows, so they are read in the order of the index, in slices of time.
 */
export async function readUnitsSince(
  on: SqlReader,
  fromMs: number,
  slices: TimeSlices = createTimeSlices(),
): Promise<Map<string, number>> {
  const sql = on.isRemote
    ? 'SELECT subscription_id, CAST(SUM(units) AS BIGINT) FROM usage_hours WHERE hour >= ? GROUP BY subscription_id'
    : 'SELECT subscription_id, units FROM usage_hours WHERE hour >= ? ORDER BY hour, subscription_id'
  const sums = new Map<string, number>()
  for await (const page of on.pages(sql, [fromMs])) {
    for (const [id, units] of page as [string, number][]) sums.set(id, (sums.get(id) ?? 0) + units)
    if (slices.isSpent()) await slices.yield()
  }
  return sums
}

export function decodeUsage(row: SqlRow): UsageRow {
  const { key, counts } = decodeCounts(HOURS, row)
  const [subscriptionId, hour, interfaceName] = key as [string, number, UsageRow['interface']]
  const { bytes = 0 } = counts
  return { subscriptionId, hour, interface: interfaceName, ...counts, bytes }
}

export function decodeMethodUsage(row: SqlRow): MethodUsageRow {
  const { key, counts } = decodeCounts(METHODS, row)
  const [subscriptionId, day, interfaceName, method] = key as [string, number, UsageRow['interface'], string]
  return { subscriptionId, day, interface: interfaceName, method, ...counts }
}
