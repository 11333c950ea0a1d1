import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import type { SqlRow, SqlValue } from '../../platform/db/sql.ts'
import { createSqliteFile, openSqlite } from '../../platform/db/sqlite.ts'

/** What one subscription was sent in one hour. */
export type DeliveryRow = {
  readonly subscriptionId: string
  /** Start of the hour, unix ms. */
  readonly hour: number
  readonly packets: number
  readonly bytes: number
  readonly unsentRate: number
  readonly unsentTotalRate: number
  readonly unsentBuffer: number
  readonly unsentPaused: number
  readonly unsentError: number
  readonly refusals: number
  readonly slots: number
  readonly firstSlot: number | null
  readonly lastSlot: number | null
  readonly duplicates: number
}

/** Delivery reports by hour, in a SQLite file of the state folder. */
export type ReportStore = AsyncDisposable & {
  add(rows: readonly DeliveryRow[]): Promise<void>
  list(filter: { fromMs?: number; subscriptionId?: string }): Promise<DeliveryRow[]>
  /** Deletes the rows of hours before this time. */
  prune(beforeMs: number): Promise<void>
}

const SUMS = [
  'packets',
  'bytes',
  'unsent_rate',
  'unsent_total_rate',
  'unsent_buffer',
  'unsent_paused',
  'unsent_error',
  'refusals',
  'slots',
  'duplicates',
] as const
const COLUMNS = ['hour', 'subscription_id', 'first_slot', 'last_slot', ...SUMS]

const CREATE = `CREATE TABLE delivery (
  hour INTEGER NOT NULL, subscription_id TEXT NOT NULL, first_slot INTEGER, last_slot INTEGER,
  ${SUMS.map((name) => `${name} INTEGER NOT NULL`).join(', ')},
  PRIMARY KEY (hour, subscription_id)
)`

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
  if (deps.create) await createSqliteFile({ file }, deps, (database) => database.change((tx) => tx.run(CREATE)))
  const database = await openSqlite({ file }, deps)
  return {
    add: (rows) =>
      database.count(async (tx) => {
        for (const row of rows) await tx.run(ADD, valuesOf(row))
      }),
    async list({ fromMs = 0, subscriptionId }) {
      const only = subscriptionId === undefined ? '' : ' AND subscription_id = ?'
      const values: SqlValue[] = subscriptionId === undefined ? [fromMs] : [fromMs, subscriptionId]
      const sql = `SELECT ${COLUMNS.join(', ')} FROM delivery WHERE hour >= ?${only} ORDER BY hour, subscription_id`
      return (await database.rows(sql, values)).map(rowOf)
    },
    prune: (beforeMs) => database.count((tx) => tx.run('DELETE FROM delivery WHERE hour < ?', [beforeMs])),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

function valuesOf(row: DeliveryRow): SqlValue[] {
  return [
    row.hour,
    row.subscriptionId,
    row.firstSlot,
    row.lastSlot,
    row.packets,
    row.bytes,
    row.unsentRate,
    row.unsentTotalRate,
    row.unsentBuffer,
    row.unsentPaused,
    row.unsentError,
    row.refusals,
    row.slots,
    row.duplicates,
  ]
}

function rowOf(row: SqlRow): DeliveryRow {
  const number = (at: number): number => Number(row[at] ?? 0)
  return {
    hour: number(0),
    subscriptionId: String(row[1]),
    firstSlot: row[2] === null ? null : number(2),
    lastSlot: row[3] === null ? null : number(3),
    packets: number(4),
    bytes: number(5),
    unsentRate: number(6),
    unsentTotalRate: number(7),
    unsentBuffer: number(8),
    unsentPaused: number(9),
    unsentError: number(10),
    refusals: number(11),
    slots: number(12),
    duplicates: number(13),
  }
}
