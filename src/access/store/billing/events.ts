import { ServiceError } from '../../../core/error.ts'
import type { SqlReader } from '../../../platform/db/sql.ts'
import type { UsageRow } from '../model.ts'
import { type TableRows, writeRecords } from '../rows.ts'
import { decodeUsage, SELECT_USAGE } from '../usage-rows.ts'
import type { BillingTablesDeps } from './deps.ts'
import { readSinkState } from './sink-state.ts'
import type { BillingBalance, BillingStore, LedgerPage, NewBillingEvent } from './store.ts'
import { BILLING_EVENT_TABLE, type BillingEvent, type BillingQuantity } from './tables.ts'
import { inParts, placeholders } from './value-parts.ts'

const BILLING_QUANTITIES = ['units', 'calls', 'bytes'] as const satisfies BillingQuantity[]

/** Makes the events of an hour, and records what became of them. */
export function createBillingEvents({
  database,
  rows,
}: BillingTablesDeps): Pick<BillingStore, 'plan' | 'waiting' | 'put' | 'summary'> {
  const events = rows(BILLING_EVENT_TABLE)
  return {
    plan: (sink, page, decide) =>
      database.change(async (tx) => {
        const made = (await balancesOf(tx, rows, sink, page)).map(decide).filter((event) => event !== undefined)
        const records = made.map((event) => newEvent(sink, event))
        await writeRecords(tx, events, records, events.insertOf)
        return made.length
      }),
    waiting: (sink, eventsMax) =>
      readEvents(database, rows, "WHERE sink = ? AND state = 'pending' ORDER BY hour LIMIT ?", [sink, eventsMax]),
    put: (sink, owner, outcomes) =>
      database.change(async (tx) => {
        if ((await readSinkState(tx, rows, sink))?.owner !== owner)
          throw new ServiceError('wrong-state', `another process sends the events for ${sink}`)
        const before = await readEventsOf(
          tx,
          rows,
          outcomes.map(({ eventKey }) => eventKey),
        )
        const changed = before.flatMap((event, at) =>
          event.state === 'pending' ? [{ ...event, ...outcomes[at] }] : [],
        )
        await writeRecords(tx, events, changed, events.upsertOf)
      }),
    async summary(sink) {
      const counted = await database.rows(
        "SELECT state, COUNT(*), MIN(hour) FROM billing_events WHERE sink = ? AND state IN ('pending', 'dead') GROUP BY state",
        [sink],
      )
      const of = (wanted: string) => counted.find(([found]) => found === wanted)
      const [marked] = await database.rows('SELECT MIN(hour) FROM billing_hours WHERE sink = ?', [sink])
      return {
        waiting: (of('pending')?.[1] as number | undefined) ?? 0,
        dead: (of('dead')?.[1] as number | undefined) ?? 0,
        oldestWaitingHour: (of('pending')?.[2] as number | undefined) ?? null,
        oldestMarkedHour: (marked?.[0] as number | null | undefined) ?? null,
      }
    },
  }
}

async function balancesOf(on: SqlReader, rows: TableRows, sink: string, page: LedgerPage): Promise<BillingBalance[]> {
  const last = page.subscriptionIds.at(-1)
  if (last === undefined) return []
  const range = [page.hour, page.after, last]
  const used = (
    await on.rows(`${SELECT_USAGE} WHERE hour = ? AND subscription_id > ? AND subscription_id <= ?`, range)
  ).map(decodeUsage)
  const promised = new Map<string, { amount: number; part: number }>()
  const keyOf = (of: Pick<UsageRow, 'subscriptionId' | 'interface'>, quantity: string) =>
    `${of.subscriptionId}/${of.interface}/${quantity}`
  const ofPage = 'WHERE sink = ? AND hour = ? AND subscription_id > ? AND subscription_id <= ?'
  for (const event of await readEvents(on, rows, ofPage, [sink, ...range])) {
    const key = keyOf(event, event.quantity)
    const { amount, part } = promised.get(key) ?? { amount: 0, part: 0 }
    promised.set(key, { amount: amount + event.amount, part: Math.max(part, event.part) })
  }
  return used.flatMap((row) =>
    BILLING_QUANTITIES.map((quantity): BillingBalance => {
      const { amount = 0, part = 0 } = promised.get(keyOf(row, quantity)) ?? {}
      return { row, quantity, amount: row[quantity], promised: amount, lastPart: part }
    }),
  )
}

export async function readEvents(
  on: SqlReader,
  rows: TableRows,
  rest: string,
  values: readonly (string | number)[],
): Promise<BillingEvent[]> {
  const events = rows(BILLING_EVENT_TABLE)
  return (await on.rows(events.select(rest), values)).map(events.decode)
}

/** Those of the keys, in their order. */
export async function readEventsOf(
  on: SqlReader,
  rows: TableRows,
  eventKeys: readonly string[],
): Promise<BillingEvent[]> {
  const found = new Map<string, BillingEvent>()
  for (const some of inParts(eventKeys))
    for (const event of await readEvents(on, rows, `WHERE event_key IN (${placeholders(some)})`, some))
      found.set(event.eventKey, event)
  return eventKeys.map((eventKey) => {
    const event = found.get(eventKey)
    if (event === undefined) throw new ServiceError('not-found', `there is no billing event ${eventKey}`)
    return event
  })
}

function newEvent(sink: string, event: NewBillingEvent): BillingEvent {
  return { ...event, eventKey: `${sink}/${event.id}`, sink, state: 'pending', doubtSince: null, reason: null }
}
