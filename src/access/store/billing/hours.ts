import type { SqlWriter } from '../../../platform/db/sql.ts'
import { createTimeSlices } from '../../../platform/process/time-slices.ts'
import type { AddedUsage } from '../model.ts'
import type { BillingTablesDeps } from './deps.ts'
import { changeSinkState } from './sink-state.ts'
import type { BillingStore } from './store.ts'

const ADD_MARK = 'ON CONFLICT (sink, hour) DO UPDATE SET marks = billing_hours.marks + 1'
/** A statement marks the hours of one subscription in so much time: the embedded engine runs on the event loop. */
const MARKED_AT_ONCE_MS = 30 * 86_400_000
/** The age up to which Stripe accepts usage; the other billing systems have no limit. */
const MARKED_AGAIN_MS = 35 * 86_400_000

/** The hours with usage, and the marks of those whose events are not made yet, or not all. */
export function createBillingHours({
  database,
  rows,
}: BillingTablesDeps): Pick<BillingStore, 'nextHour' | 'lastHour' | 'page' | 'openHour' | 'markedHour' | 'unmarkHour'> {
  async function hourIn(select: 'MIN(hour)' | 'MAX(hour)', range: readonly [from: number, to: number]) {
    const found = await database.rows(`SELECT ${select} FROM usage_hours WHERE hour >= ? AND hour <= ?`, range)
    return (found[0]?.[0] as number | null) ?? undefined
  }
  return {
    nextHour: (fromHour, toHour) => hourIn('MIN(hour)', [fromHour, toHour]),
    lastHour: (fromHour, toHour) => hourIn('MAX(hour)', [fromHour, toHour]),
    async page(hour, after, subscriptionsMax) {
      const found = await database.rows(
        'SELECT DISTINCT subscription_id FROM usage_hours WHERE hour = ? AND subscription_id > ? ORDER BY subscription_id LIMIT ?',
        [hour, after, subscriptionsMax],
      )
      const subscriptionIds = found.map(([id]) => id as string)
      return { hour, after, subscriptionIds, isLast: subscriptionIds.length < subscriptionsMax }
    },
    openHour: (sink, hour) =>
      database.change(async (tx) => {
        await changeSinkState(tx, rows, sink, { plannedHour: hour })
        await tx.run(`INSERT INTO billing_hours (sink, hour, marks) VALUES (?, ?, 1) ${ADD_MARK}`, [sink, hour])
      }),
    async markedHour(sink) {
      const [row] = await database.rows('SELECT hour, marks FROM billing_hours WHERE sink = ? ORDER BY hour LIMIT 1', [
        sink,
      ])
      return row && { hour: row[0] as number, marks: row[1] as number }
    },
    unmarkHour: (sink, { hour, marks }) =>
      database.change((tx) =>
        tx.run('DELETE FROM billing_hours WHERE sink = ? AND hour = ? AND marks = ?', [sink, hour, marks]),
      ),
  }
}

/** Hours that have their events already are compared once more: their usage could not be sent without the billing id. */
export async function markHoursOf(tx: SqlWriter, customerId: string): Promise<void> {
  const slices = createTimeSlices()
  const [planned] = await tx.rows('SELECT MAX(planned_hour) FROM billing_state')
  const lastMs = (planned?.[0] as number | null | undefined) ?? -1
  for (const [subscriptionId] of await tx.rows('SELECT id FROM subscriptions WHERE customer_id = ?', [customerId])) {
    const [first] = await tx.rows('SELECT MIN(hour) FROM usage_hours WHERE subscription_id = ?', [
      subscriptionId as string,
    ])
    const firstMs = (first?.[0] as number | null | undefined) ?? Number.POSITIVE_INFINITY
    for (let fromMs = firstMs; fromMs <= lastMs; fromMs += MARKED_AT_ONCE_MS) {
      await tx.run(
        `INSERT INTO billing_hours (sink, hour, marks)
        SELECT DISTINCT s.sink, u.hour, 1 FROM billing_state s, usage_hours u
        WHERE u.subscription_id = ? AND u.hour >= ? AND u.hour < ? AND u.hour <= s.planned_hour
        ${ADD_MARK}`,
        [subscriptionId as string, fromMs, fromMs + MARKED_AT_ONCE_MS],
      )
      if (slices.isSpent()) await slices.yield()
    }
  }
}

/**
 * Marks the last hours that have their events in a restored store: a backup has no marks, and some of these hours may have had one. Older ones are left
 * to the slow comparison of all hours.
 */
export async function markRestoredHours(tx: SqlWriter): Promise<void> {
  await tx.run(
    `INSERT INTO billing_hours (sink, hour, marks)
    SELECT DISTINCT s.sink, u.hour, 1 FROM billing_state s, usage_hours u
    WHERE u.hour <= s.planned_hour AND u.hour > s.planned_hour - CAST(? AS BIGINT)`,
    [MARKED_AGAIN_MS],
  )
}

/** Marks hours that have their events already and get more usage: what the events do not contain is sent as a further part. */
export async function markLateHours(tx: SqlWriter, used: readonly AddedUsage[]): Promise<void> {
  for (const hour of new Set(used.map((row) => row.hour)))
    await tx.run(
      `INSERT INTO billing_hours (sink, hour, marks) SELECT sink, CAST(? AS BIGINT), 1 FROM billing_state WHERE planned_hour >= ?
      ${ADD_MARK}`,
      [hour, hour],
    )
}
