import type { SqlDatabase, SqlWriter } from '../../platform/db/sql.ts'
import { createTimeSlices } from '../../platform/process/time-slices.ts'
import { deleteUsageMarks } from './usage-marks.ts'
import { dayOf } from './usage-rows.ts'

export type PruneRequest = {
  readonly beforeMs: number
  readonly hoursMax: number
  /** Whether the store has the tables of billing. */
  readonly hasBilling: boolean
  readonly signal?: AbortSignal | undefined
}

/** Subscriptions whose rows of one hour are deleted at once: the embedded engine runs on the event loop. */
const SUBSCRIPTIONS_AT_ONCE = 50
const METHODS_AT_ONCE = 200

/**
 * Deletes the usage of old hours, oldest first, and returns the number of hours deleted. Each transaction deletes few rows, and the event loop runs
 * before the next one. Usage and its billing events are deleted together: usage without its events would be billed again.
 */
export async function pruneUsage(
  database: SqlDatabase,
  { beforeMs, hoursMax, hasBilling, signal }: PruneRequest,
): Promise<number> {
  const slices = createTimeSlices()
  let hours = 0
  /** False when the caller has stopped. */
  async function inParts(part: (tx: SqlWriter) => Promise<{ isLast: boolean }>): Promise<boolean> {
    for (let isLast = false; !isLast; ) {
      if (signal?.aborted) return false
      await database.count(async (tx) => {
        isLast = (await part(tx)).isLast
      })
      await slices.yield()
    }
    return true
  }

  await database.count((tx) => deleteUsageMarks(tx, beforeMs))
  for (; hours < hoursMax; hours++) {
    const [oldest] = await database.rows('SELECT MIN(hour) FROM usage_hours WHERE hour < ?', [beforeMs])
    const hour = (oldest?.[0] as number | null | undefined) ?? undefined
    if (hour === undefined) break
    // The days before this hour have no hours any more.
    if (!(await inParts((tx) => deleteMethods(tx, dayOf(hour))))) break
    if (!(await inParts((tx) => deleteHour(tx, hour, hasBilling)))) break
  }
  return hours
}

async function deleteMethods(tx: SqlWriter, beforeDay: number): Promise<{ isLast: boolean }> {
  const key = 'subscription_id, day, interface, method'
  const old = 'FROM usage_methods WHERE day < ?'
  const found = await tx.rows(`SELECT 1 ${old} LIMIT ?`, [beforeDay, METHODS_AT_ONCE])
  if (found.length > 0)
    await tx.run(`DELETE FROM usage_methods WHERE (${key}) IN (SELECT ${key} ${old} LIMIT ?)`, [
      beforeDay,
      METHODS_AT_ONCE,
    ])
  return { isLast: found.length < METHODS_AT_ONCE }
}

/** Deletes the first subscriptions of an hour. Events that were not sent stay. */
async function deleteHour(tx: SqlWriter, hour: number, hasBilling: boolean): Promise<{ isLast: boolean }> {
  const found = await tx.rows(
    'SELECT DISTINCT subscription_id FROM usage_hours WHERE hour = ? ORDER BY subscription_id LIMIT ?',
    [hour, SUBSCRIPTIONS_AT_ONCE],
  )
  const isLast = found.length < SUBSCRIPTIONS_AT_ONCE
  const lastId = found.at(-1)?.[0] as string
  const [where, values] = isLast ? ['hour = ?', [hour]] : ['hour = ? AND subscription_id <= ?', [hour, lastId]]
  await tx.run(`DELETE FROM usage_hours WHERE ${where}`, values)
  if (!hasBilling) return { isLast }
  // The indexes begin with the sink.
  const ofSinks = `sink IN (SELECT sink FROM billing_state) AND ${where}`
  await tx.run(`DELETE FROM billing_events WHERE ${ofSinks} AND state = 'sent'`, values)
  if (isLast) await tx.run(`DELETE FROM billing_hours WHERE ${ofSinks}`, values)
  return { isLast }
}
