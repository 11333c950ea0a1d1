import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { recordOf } from '../../core/records.ts'
import type { SqlDatabase, SqlRow, SqlValue } from '../../platform/db/sql.ts'
import { createSqliteFile, openSqlite } from '../../platform/db/sqlite.ts'
import { sqliteFileExists } from '../../platform/db/sqlite-file.ts'
import { createTimeSlices } from '../../platform/process/time-slices.ts'
import { DELAY_BOUNDS_MICROS } from '../relay/protocol.ts'

/** What is summed, by field of a row, and its column. */
const SUM_COLUMNS = {
  packets: 'packets',
  bytes: 'bytes',
  unsentRate: 'unsent_rate',
  unsentTotalRate: 'unsent_total_rate',
  unsentBuffer: 'unsent_buffer',
  unsentPaused: 'unsent_paused',
  unsentError: 'unsent_error',
  refusals: 'refusals',
  slots: 'slots',
  duplicates: 'duplicates',
} as const
type SumName = keyof typeof SUM_COLUMNS
export const SUM_NAMES = Object.keys(SUM_COLUMNS) as SumName[]

/** What one subscription was sent in one hour. */
export type DeliveryRow = Readonly<Record<SumName, number>> & {
  readonly subscriptionId: string
  /** Start of the hour, unix ms. */
  readonly hour: number
  readonly firstSlot: number | null
  readonly lastSlot: number | null
}

/** How long shreds took in one hour, in the buckets of DELAY_BOUNDS_MICROS. */
export type DelayRow = { readonly hour: number; readonly packets: readonly number[] }

/** Delivery reports by hour, in a SQLite file of the state folder. */
export type ReportStore = AsyncDisposable & {
  add(rows: readonly DeliveryRow[], delays?: readonly DelayRow[]): Promise<void>
  list(filter: { fromMs?: number; subscriptionId?: string }): Promise<DeliveryRow[]>
  /** The rows of a period in the order of `list`, at most PAGE_ROWS at a time: for a thread that must not be held. */
  pages(filter: { fromMs: number; toMs: number; subscriptionId?: string | undefined }): AsyncGenerator<DeliveryRow[]>
  /** The delays of the hours of a period; none from a file of an earlier version. */
  delays(period: { fromMs: number; toMs?: number | undefined }): Promise<DelayRow[]>
  /** Start of the newest hour; undefined without rows. */
  newestHour(): Promise<number | undefined>
  /** Deletes the rows of hours before this time, at most PRUNED_ROWS_MAX at once; false where it has to be called again. */
  prune(beforeMs: number): Promise<boolean>
}

const PAGE_ROWS = 1000
/** Rows of one statement that deletes: the embedded engine runs on the event loop. */
const DELETE_ROWS = 500
/** Little enough to end in a second, since new rows wait for it. */
export const PRUNED_ROWS_MAX = 20_000
const SUMS = Object.values(SUM_COLUMNS)
const COLUMNS = ['hour', 'subscription_id', 'first_slot', 'last_slot', ...SUMS]

const CREATE = `CREATE TABLE delivery (
  hour INTEGER NOT NULL, subscription_id TEXT NOT NULL, first_slot INTEGER, last_slot INTEGER,
  ${SUMS.map((name) => `${name} INTEGER NOT NULL`).join(', ')},
  PRIMARY KEY (hour, subscription_id)
)`

/** One row for each bucket that has packets. */
const CREATE_DELAYS = `CREATE TABLE IF NOT EXISTS delays (
  hour INTEGER NOT NULL, bucket INTEGER NOT NULL, packets INTEGER NOT NULL, PRIMARY KEY (hour, bucket)
)`
const ADD_DELAY = `INSERT INTO delays (hour, bucket, packets) VALUES (?, ?, ?)
ON CONFLICT (hour, bucket) DO UPDATE SET packets = delays.packets + excluded.packets`

const ADD = `INSERT INTO delivery (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map(() => '?').join(', ')})
ON CONFLICT (hour, subscription_id) DO UPDATE SET
  ${SUMS.map((name) => `${name} = delivery.${name} + excluded.${name}`).join(', ')},
  first_slot = min(coalesce(delivery.first_slot, excluded.first_slot), coalesce(excluded.first_slot, delivery.first_slot)),
  last_slot = max(coalesce(delivery.last_slot, excluded.last_slot), coalesce(excluded.last_slot, delivery.last_slot))`

/** Opens the file; `create` makes it where it is missing. */
export async function openReportStore(
  file: string,
  deps: { readonly clock: Clock; readonly random: Random; readonly create: boolean },
): Promise<ReportStore> {
  // Only then: on a full disk the draft of a new file could not be written, and the start would fail for it.
  if (deps.create && !(await sqliteFileExists(file)))
    await createSqliteFile({ file }, deps, (database) => database.change((tx) => tx.run(CREATE)))
  const database = await openSqlite({ file }, deps)
  // A file of an earlier version gets the table from the process that writes.
  if (deps.create) await database.change((tx) => tx.run(CREATE_DELAYS))
  return {
    add: (rows, delays = []) =>
      // In one transaction, so that all or none are added; nothing else writes to this file.
      database.count(async (tx) => {
        const slices = createTimeSlices()
        for (const row of rows) {
          await tx.run(ADD, valuesOf(row))
          if (slices.isSpent()) await slices.yield()
        }
        for (const { hour, packets } of delays)
          for (const [bucket, count] of packets.entries()) if (count > 0) await tx.run(ADD_DELAY, [hour, bucket, count])
      }),
    async list({ fromMs = 0, subscriptionId }) {
      const only = subscriptionId === undefined ? '' : ' AND subscription_id = ?'
      const values: SqlValue[] = subscriptionId === undefined ? [fromMs] : [fromMs, subscriptionId]
      const sql = `SELECT ${COLUMNS.join(', ')} FROM delivery WHERE hour >= ?${only} ORDER BY hour, subscription_id`
      return (await database.rows(sql, values)).map(rowOf)
    },
    async *pages({ fromMs, toMs, subscriptionId }) {
      const only = subscriptionId === undefined ? '' : ' AND subscription_id = ?'
      const sql = `SELECT ${COLUMNS.join(', ')} FROM delivery WHERE (hour, subscription_id) > (?, ?) AND hour < ?${only}
ORDER BY hour, subscription_id LIMIT ${PAGE_ROWS}`
      let after: [number, string] = [fromMs, '']
      for (;;) {
        const values = subscriptionId === undefined ? [...after, toMs] : [...after, toMs, subscriptionId]
        const rows = (await database.rows(sql, values)).map(rowOf)
        const last = rows.at(-1)
        if (last === undefined) return
        yield rows
        if (rows.length < PAGE_ROWS) return
        after = [last.hour, last.subscriptionId]
      }
    },
    async delays({ fromMs, toMs = Number.MAX_SAFE_INTEGER }) {
      const known = await database.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'delays'", [])
      if (known.length === 0) return []
      const sql = 'SELECT hour, bucket, packets FROM delays WHERE hour >= ? AND hour < ? ORDER BY hour, bucket'
      const byHour = new Map<number, number[]>()
      for (const [hour, bucket, packets] of await database.rows(sql, [fromMs, toMs])) {
        const counts = byHour.get(Number(hour)) ?? emptyDelays()
        counts[Number(bucket)] = Number(packets)
        byHour.set(Number(hour), counts)
      }
      return [...byHour].map(([hour, packets]) => ({ hour, packets }))
    },
    async newestHour() {
      const [row] = await database.rows('SELECT max(hour) FROM delivery', [])
      return typeof row?.[0] === 'number' || typeof row?.[0] === 'bigint' ? Number(row[0]) : undefined
    },
    prune: (beforeMs) => prune(database, beforeMs),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

async function prune(database: SqlDatabase, beforeMs: number): Promise<boolean> {
  const slices = createTimeSlices()
  let rowsLeft = PRUNED_ROWS_MAX
  for (const table of ['delivery', 'delays']) {
    const old = `SELECT rowid FROM ${table} WHERE hour < ? LIMIT ${DELETE_ROWS}`
    for (let found = DELETE_ROWS; found === DELETE_ROWS; ) {
      if (rowsLeft <= 0) return false
      await database.count(async (tx) => {
        found = (await tx.rows(old, [beforeMs])).length
        if (found > 0) await tx.run(`DELETE FROM ${table} WHERE rowid IN (${old})`, [beforeMs])
      })
      rowsLeft -= found
      await slices.yield()
    }
  }
  return true
}

function emptyDelays(): number[] {
  return Array.from({ length: DELAY_BOUNDS_MICROS.length + 1 }, () => 0)
}

function valuesOf(row: DeliveryRow): SqlValue[] {
  return [row.hour, row.subscriptionId, row.firstSlot, row.lastSlot, ...SUM_NAMES.map((name) => row[name])]
}

function rowOf([hour, subscriptionId, firstSlot, lastSlot, ...sums]: SqlRow): DeliveryRow {
  const slotOf = (value: SqlValue | undefined) => (value === null ? null : Number(value ?? 0))
  return {
    hour: Number(hour ?? 0),
    subscriptionId: String(subscriptionId),
    firstSlot: slotOf(firstSlot),
    lastSlot: slotOf(lastSlot),
    ...recordOf(SUM_NAMES, (_name, at) => Number(sums[at] ?? 0)),
  }
}
