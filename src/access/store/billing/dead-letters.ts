import { ServiceError } from '../../../core/error.ts'
import type { SqlReader } from '../../../platform/db/sql.ts'
import { createTimeSlices } from '../../../platform/process/time-slices.ts'
import { type TableRows, writeRecords } from '../rows.ts'
import type { BillingTablesDeps } from './deps.ts'
import { readEvents, readEventsOf } from './events.ts'
import type { BillingRetry, BillingStore } from './store.ts'
import { BILLING_EVENT_TABLE, type BillingEvent } from './tables.ts'
import { inParts } from './value-parts.ts'

/** Dead letters that one retry changes, so that the store is not locked for long. */
const RETRY_EVENTS_MAX = 5000

/** Events that are not sent again until the operator decides. */
export function createDeadLetters({ database, rows, change }: BillingTablesDeps): Pick<BillingStore, 'dead' | 'retry'> {
  const events = rows(BILLING_EVENT_TABLE)
  return {
    dead: (sink, eventsMax) =>
      readEvents(database, rows, "WHERE sink = ? AND state = 'dead' ORDER BY hour, event_key LIMIT ?", [
        sink,
        eventsMax,
      ]),
    retry: (context, sink, which) =>
      change(context, async (_records, tx) => {
        const slices = createTimeSlices()
        const chosen = await chosenDead(tx, rows, sink, which)
        const ready = chosen.filter(
          ({ doubtSince }) => doubtSince === null || which.isUnknownIncluded || which.isMarkedSent,
        )
        const to = { state: which.isMarkedSent ? 'sent' : 'pending', doubtSince: null, reason: null } as const
        for (const some of inParts(ready)) {
          await writeRecords(
            tx,
            events,
            some.map((event) => ({ ...event, ...to })),
            events.upsertOf,
          )
          await slices.yield()
        }
        const result = { changed: ready.length, unknown: chosen.length - ready.length }
        const after = { events: ready.length, state: to.state, ids: ready.slice(0, 20).map(({ id }) => id) }
        return { audit: { action: 'billing.retry', subjects: [sink], after }, result }
      }),
  }
}

async function chosenDead(
  on: SqlReader,
  rows: TableRows,
  sink: string,
  { ids }: BillingRetry,
): Promise<BillingEvent[]> {
  if (ids === undefined) {
    const events = rows(BILLING_EVENT_TABLE)
    const slices = createTimeSlices()
    const dead: BillingEvent[] = []
    const all = events.select("WHERE sink = ? AND state = 'dead' ORDER BY hour, event_key LIMIT ?")
    for await (const page of on.pages(all, [sink, RETRY_EVENTS_MAX])) {
      dead.push(...page.map(events.decode))
      await slices.yield()
    }
    return dead
  }
  const found = await readEventsOf(
    on,
    rows,
    [...new Set(ids)].map((id) => `${sink}/${id}`),
  )
  const other = found.find((event) => event.state !== 'dead')
  if (other !== undefined)
    throw new ServiceError('wrong-state', `billing event ${other.id} is ${other.state}, not a dead letter`, {
      fix: 'List the dead letters with: sluice billing status',
    })
  return found
}
