import { ServiceError } from '../../core/error.ts'
import type { SqlDatabase, SqlReader, SqlWriter } from '../../platform/db/sql.ts'
import { createTimeSlices } from '../../platform/process/time-slices.ts'
import type { BillingBalance, BillingRetry, BillingStore, LedgerPage, NewBillingEvent } from './billing-store.ts'
import {
  BILLING_CUSTOMER_TABLE,
  BILLING_EVENT_TABLE,
  BILLING_STATE_TABLE,
  type BillingEvent,
  type BillingQuantity,
  type BillingState,
} from './billing-tables.ts'
import type { AddedUsage, UsageRow } from './model.ts'
import { type TableRows, writeRecords } from './rows.ts'
import type { AccessTransaction, AuditEntry, ChangeContext } from './store.ts'
import { decodeUsage, SELECT_USAGE } from './usage-rows.ts'

const BILLING_QUANTITIES = ['units', 'calls', 'bytes'] as const satisfies BillingQuantity[]

export type BillingRowsDeps = {
  readonly database: SqlDatabase
  readonly rows: TableRows
  /** A change of the operator, with its audit line. */
  change<T>(
    context: ChangeContext,
    work: (tx: SqlWriter, records: AccessTransaction) => Promise<{ audit: AuditEntry; result: T }>,
  ): Promise<T>
}

const ADD_MARK = 'ON CONFLICT (sink, hour) DO UPDATE SET marks = billing_hours.marks + 1'
/** Values of one statement: far below the limits of the engines. Events of one turn of the event loop, on which the embedded engine runs. */
const VALUES_MAX = 200
/** Dead letters that one retry changes, so that the store is not locked for long. */
const RETRY_EVENTS_MAX = 5000

export function createBillingRows({ database, rows, change }: BillingRowsDeps): BillingStore {
  const events = rows(BILLING_EVENT_TABLE)
  const states = rows(BILLING_STATE_TABLE)
  const customers = rows(BILLING_CUSTOMER_TABLE)

  async function state(on: SqlReader, sink: string): Promise<BillingState | undefined> {
    const [row] = await on.rows(states.select('WHERE sink = ?'), [sink])
    return row && states.decode(row)
  }

  async function changeState(tx: SqlWriter, sink: string, changes: Partial<BillingState>): Promise<BillingState> {
    const before = await state(tx, sink)
    if (before === undefined) throw nothingSent(sink)
    const after = { ...before, ...changes }
    await tx.run(states.upsert, states.encode(after))
    return after
  }

  async function eventsWhere(on: SqlReader, rest: string, values: readonly (string | number)[]) {
    return (await on.rows(events.select(rest), values)).map(events.decode)
  }

  /** Those of the keys, in their order. */
  async function eventsOf(tx: SqlReader, eventKeys: readonly string[]): Promise<BillingEvent[]> {
    const found = new Map<string, BillingEvent>()
    for (const some of inParts(eventKeys))
      for (const event of await eventsWhere(tx, `WHERE event_key IN (${marksOf(some)})`, some))
        found.set(event.eventKey, event)
    return eventKeys.map((eventKey) => {
      const event = found.get(eventKey)
      if (event === undefined) throw new ServiceError('not-found', `there is no billing event ${eventKey}`)
      return event
    })
  }

  return {
    state: (sink) => state(database, sink),
    begin: (given) =>
      database.change(async (tx) => {
        const found = await state(tx, given.sink)
        if (found === undefined) await tx.run(states.insert, states.encode(given))
        return found ?? given
      }),
    lease: (sink, { owner, nowMs, untilMs }) =>
      database.change(async (tx) => {
        const found = await state(tx, sink)
        if (found === undefined) throw nothingSent(sink)
        if (found.owner !== null && found.owner !== owner && found.leaseUntil > nowMs) return undefined
        return changeState(tx, sink, { owner, leaseUntil: untilMs })
      }),
    release: (sink, owner) =>
      database.change(async (tx) => {
        if ((await state(tx, sink))?.owner === owner) await changeState(tx, sink, { owner: null, leaseUntil: 0 })
      }),

    async nextHour(fromHour, toHour) {
      const found = await database.rows('SELECT MIN(hour) FROM usage_hours WHERE hour >= ? AND hour <= ?', [
        fromHour,
        toHour,
      ])
      return (found[0]?.[0] as number | null) ?? undefined
    },
    async page(hour, after, subscriptionsMax) {
      const found = await database.rows(
        'SELECT DISTINCT subscription_id FROM usage_hours WHERE hour = ? AND subscription_id > ? ORDER BY subscription_id LIMIT ?',
        [hour, after, subscriptionsMax],
      )
      const subscriptionIds = found.map(([id]) => id as string)
      return { hour, after, subscriptionIds, isLast: subscriptionIds.length < subscriptionsMax }
    },
    plan: (sink, page, decide) =>
      database.change(async (tx) => {
        const made = (await balancesOf(tx, sink, page)).map(decide).filter((event) => event !== undefined)
        const records = made.map((event) => newEvent(sink, event))
        await writeRecords(tx, events, records, events.insertOf)
        return made.length
      }),
    openHour: (sink, hour) =>
      database.change(async (tx) => {
        await changeState(tx, sink, { plannedHour: hour })
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

    waiting: (sink, eventsMax) =>
      eventsWhere(database, "WHERE sink = ? AND state = 'pending' ORDER BY hour LIMIT ?", [sink, eventsMax]),
    put: (sink, owner, outcomes) =>
      database.change(async (tx) => {
        if ((await state(tx, sink))?.owner !== owner)
          throw new ServiceError('wrong-state', `another process sends the events for ${sink}`)
        const before = await eventsOf(
          tx,
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
    dead: (sink, eventsMax) =>
      eventsWhere(database, "WHERE sink = ? AND state = 'dead' ORDER BY hour, event_key LIMIT ?", [sink, eventsMax]),

    setPaused: (context, sink, paused) =>
      change(context, async (tx) => {
        await changeState(tx, sink, { paused })
        return { audit: { action: paused ? 'billing.pause' : 'billing.resume', subjects: [sink] }, result: undefined }
      }),
    retry: (context, sink, which) =>
      change(context, async (tx) => {
        const slices = createTimeSlices()
        const chosen = await chosenDead(tx, sink, which)
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
    setBillingId: (context, customerId, billingId) =>
      change(context, async (tx, records) => {
        await raiseRevision(records, customerId, context.ifRevision)
        const before = await billingIds(tx, [customerId])
        if (billingId === null) await tx.run('DELETE FROM billing_customers WHERE customer_id = ?', [customerId])
        else await tx.run(customers.upsert, customers.encode({ customerId, billingId }))
        await markHoursOf(tx, customerId)
        return {
          audit: {
            action: 'customer.billing-id',
            subjects: [customerId],
            before: { billingId: before.get(customerId) ?? null },
            after: { billingId },
          },
          result: undefined,
        }
      }),
    billingIds: (customerIds) => billingIds(database, customerIds),
  }

  async function balancesOf(tx: SqlReader, sink: string, page: LedgerPage): Promise<BillingBalance[]> {
    const last = page.subscriptionIds.at(-1)
    if (last === undefined) return []
    const range = [page.hour, page.after, last]
    const used = (
      await tx.rows(`${SELECT_USAGE} WHERE hour = ? AND subscription_id > ? AND subscription_id <= ?`, range)
    ).map(decodeUsage)
    const promised = new Map<string, { amount: number; part: number }>()
    const keyOf = (of: Pick<UsageRow, 'subscriptionId' | 'interface'>, quantity: string) =>
      `${of.subscriptionId}/${of.interface}/${quantity}`
    const made = await eventsWhere(tx, 'WHERE sink = ? AND hour = ? AND subscription_id > ? AND subscription_id <= ?', [
      sink,
      ...range,
    ])
    for (const event of made) {
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

  async function chosenDead(tx: SqlReader, sink: string, { ids }: BillingRetry): Promise<BillingEvent[]> {
    if (ids === undefined) {
      const slices = createTimeSlices()
      const dead: BillingEvent[] = []
      const all = events.select("WHERE sink = ? AND state = 'dead' ORDER BY hour, event_key LIMIT ?")
      for await (const page of tx.pages(all, [sink, RETRY_EVENTS_MAX])) {
        dead.push(...page.map(events.decode))
        await slices.yield()
      }
      return dead
    }
    const found = await eventsOf(
      tx,
      [...new Set(ids)].map((id) => `${sink}/${id}`),
    )
    const other = found.find((event) => event.state !== 'dead')
    if (other !== undefined)
      throw new ServiceError('wrong-state', `billing event ${other.id} is ${other.state}, not a dead letter`, {
        fix: 'List the dead letters with: sluice billing status',
      })
    return found
  }

  async function billingIds(on: SqlReader, customerIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>()
    for (const some of inParts(customerIds)) {
      for (const row of await on.rows(customers.select(`WHERE customer_id IN (${marksOf(some)})`), some)) {
        const { customerId, billingId } = customers.decode(row)
        found.set(customerId, billingId)
      }
    }
    return found
  }
}

/** Who changes the customer next sees that this change came first. */
async function raiseRevision(
  records: AccessTransaction,
  customerId: string,
  ifRevision: number | undefined,
): Promise<void> {
  const customer = await records.get('customers', customerId)
  if (customer === undefined) return
  const { name, revision } = customer
  if (ifRevision !== undefined && ifRevision !== revision)
    throw new ServiceError('revision-changed', `customer "${name}" has revision ${revision}, not ${ifRevision}`, {
      fields: { revision, expected: ifRevision },
    })
  await records.put('customers', customer)
}

/** A statement marks the hours of one subscription in so much time: the embedded engine runs on the event loop. */
const MARKED_AT_ONCE_MS = 30 * 86_400_000

/** Hours that have their events already are compared once more: their usage could not be sent without the billing id. */
async function markHoursOf(tx: SqlWriter, customerId: string): Promise<void> {
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

/** Marks hours that have their events already and get more usage: what the events do not contain is sent as a further part. */
export async function markLateHours(tx: SqlWriter, used: readonly AddedUsage[]): Promise<void> {
  for (const hour of new Set(used.map((row) => row.hour)))
    await tx.run(
      `INSERT INTO billing_hours (sink, hour, marks) SELECT sink, CAST(? AS BIGINT), 1 FROM billing_state WHERE planned_hour >= ?
      ${ADD_MARK}`,
      [hour, hour],
    )
}

/** As many values as one statement takes. */
function* inParts<T>(values: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < values.length; at += VALUES_MAX) yield values.slice(at, at + VALUES_MAX)
}

function marksOf(values: readonly string[]): string {
  return values.map(() => '?').join(', ')
}

function newEvent(sink: string, event: NewBillingEvent): BillingEvent {
  return { ...event, eventKey: `${sink}/${event.id}`, sink, state: 'pending', doubtSince: null, reason: null }
}

function nothingSent(sink: string): ServiceError {
  return new ServiceError('not-found', `nothing was ever sent to ${sink} from this store`, {
    fix: 'Set billing.sink in the configuration and start sluice serve.',
  })
}
