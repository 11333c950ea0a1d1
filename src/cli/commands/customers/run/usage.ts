import { lookUp } from '../../../../access/provisioning/context.ts'
import type { Customer, UsageInterface } from '../../../../access/store/model.ts'
import type { AccessStore } from '../../../../access/store/store.ts'
import { ServiceError } from '../../../../core/error.ts'
import { dayStart, parseMonth, parsePastUntil, parseSince, printDay, printTime } from '../../../dates.ts'
import type { CliContext, ListFlags } from '../../../define.ts'
import { type Column, FROM_COLUMN, printList, write } from '../../../output/print.ts'
import { openSession, type Session } from '../../../session.ts'

export type UsageFlags = ListFlags & {
  readonly customer?: string
  readonly sub?: string
  readonly month?: string
  readonly since?: string
  readonly until?: string
  readonly by?: 'hour' | 'day' | 'total' | 'method'
}

type Period = { readonly fromMs: number; readonly toMs: number }

/** A line of the list. `hour` is the start of its hour or day, 0 for the complete period. */
type Line = {
  readonly subscriptionId: string
  readonly hour: number
  readonly interface: UsageInterface
  readonly method?: string
  readonly calls: number
  readonly units: number
  readonly refused: number
}

export async function usage(this: CliContext, flags: UsageFlags): Promise<void> {
  await using session = await openSession(this, flags, 'read')
  const by = flags.by ?? 'total'
  const period = periodOf(flags, session.nowMs)
  const selected = await selectedSubscriptions(session, flags)
  const read = async (grouping: typeof by) =>
    (await Promise.all(selected.map((id) => readLines(session.store, grouping, period, id)))).flat()
  // Read before the methods: what is added meanwhile must not count as missing there.
  const total = by === 'method' ? await read('total') : []
  const lines = await read(by)
  const subscriptions = new Map((await session.store.list('subscriptions')).map((sub) => [sub.id, sub]))
  const nameOf = ({ subscriptionId }: Line) => subscriptions.get(subscriptionId)?.name ?? subscriptionId
  const rows = group(lines, by).toSorted(
    (a, b) =>
      a.hour - b.hour ||
      nameOf(a).localeCompare(nameOf(b)) ||
      a.interface.localeCompare(b.interface) ||
      b.units - a.units,
  )
  const customers = new Map((await session.store.list('customers')).map((customer) => [customer.id, customer]))
  const customerOf = ({ subscriptionId }: Line) => customers.get(subscriptions.get(subscriptionId)?.customerId ?? '')
  printList(this, flags, {
    rows,
    empty: `no usage ${periodText(period)}; usage is kept for ${session.config.access.usage.keepDays} days`,
    columns: [...(by === 'hour' || by === 'day' ? [FROM_COLUMN] : []), ...columnsOf({ by, nameOf, customerOf })],
  })
  const isTable = flags.json !== true && (flags.output ?? 'table') !== 'json' && flags.output !== 'csv'
  if (isTable && rows.length > 0) write(this, `${periodText(period)}: ${totalOf(rows)}`)
  const missing = sumOf(total, 'units') - sumOf(lines, 'units')
  if (by === 'method' && missing > 0 && flags.json !== true)
    write(this, `${missing} units of this period were used before methods were counted, and are not in this list`)
}

function periodOf(flags: UsageFlags, nowMs: number): Period {
  if (flags.month !== undefined) {
    if (flags.since === undefined && flags.until === undefined) return parseMonth(flags.month)
    throw new ServiceError('usage', '--month is a complete period: it goes without --since and --until', {
      fix: 'Use --month alone, or --since and --until.',
    })
  }
  const toMs = flags.until === undefined ? nowMs : parsePastUntil(flags.until, nowMs)
  // Without --since the 30 days before the end.
  const fromMs = flags.since === undefined ? parseSince('30d', toMs) : parseSince(flags.since, nowMs)
  if (fromMs < toMs) {
    if (flags.by !== 'method') return { fromMs, toMs }
    return { fromMs: dayStart(fromMs), toMs: dayStart(toMs - 1) + DAY_MS }
  }
  throw new ServiceError('invalid-value', 'the period ends before it begins', {
    fix: 'Give a --since that is before --until.',
  })
}

/** The ids that the flags select, of cancelled subscriptions and removed customers too. One undefined stands for all. */
async function selectedSubscriptions({ store }: Session, flags: UsageFlags): Promise<(string | undefined)[]> {
  const sub = flags.sub === undefined ? undefined : await lookUp(store, 'subscriptions', flags.sub)
  const customer = flags.customer === undefined ? undefined : await lookUp(store, 'customers', flags.customer)
  if (sub !== undefined && customer !== undefined && sub.customerId !== customer.id) {
    throw new ServiceError(
      'invalid-value',
      `subscription "${sub.name}" does not belong to customer "${customer.name}"`,
      {
        fix: 'Leave out one of the two flags.',
      },
    )
  }
  if (sub !== undefined || customer === undefined) return [sub?.id]
  return (await store.find('subscriptions', { customerId: customer.id })).map(({ id }) => id)
}

async function readLines(
  store: AccessStore,
  by: NonNullable<UsageFlags['by']>,
  period: Period,
  subscriptionId: string | undefined,
): Promise<Line[]> {
  const filter = { ...period, ...(subscriptionId === undefined ? {} : { subscriptionId }) }
  if (by !== 'method') return store.usage(filter)
  return (await store.methodUsage(filter)).map(({ day, ...row }) => ({ ...row, hour: day }))
}

const DAY_MS = 86_400_000
const SPANS_MS = { hour: 3_600_000, day: DAY_MS, total: undefined, method: undefined }

/** Sums the hours of a day, or of the complete period. */
function group(lines: readonly Line[], by: NonNullable<UsageFlags['by']>): Line[] {
  const spanMs = SPANS_MS[by]
  const sums = new Map<string, Line>()
  for (const line of lines) {
    const from = spanMs === undefined ? 0 : Math.floor(line.hour / spanMs) * spanMs
    const key = JSON.stringify([from, line.subscriptionId, line.interface, line.method])
    const sum = sums.get(key)
    sums.set(key, {
      ...line,
      hour: from,
      calls: line.calls + (sum?.calls ?? 0),
      units: line.units + (sum?.units ?? 0),
      refused: line.refused + (sum?.refused ?? 0),
    })
  }
  return [...sums.values()]
}

type Named = {
  readonly by: UsageFlags['by']
  nameOf(line: Line): string
  customerOf(line: Line): Customer | undefined
}

function columnsOf({ by, nameOf, customerOf }: Named): Column<Line>[] {
  return [
    { title: 'SUBSCRIPTION', value: nameOf },
    { title: 'INTERFACE', value: (row) => row.interface },
    ...(by === 'method' ? [{ title: 'METHOD', value: (row: Line) => row.method }] : []),
    { title: 'CALLS', value: (row) => row.calls },
    { title: 'UNITS', value: (row) => row.units },
    { title: 'REFUSED', value: (row) => row.refused },
    { title: 'CUSTOMER', value: (row) => customerOf(row)?.name, wide: true },
    { title: 'SUBSCRIPTION ID', value: (row) => row.subscriptionId, wide: true },
    { title: 'CUSTOMER ID', value: (row) => customerOf(row)?.id, wide: true },
  ]
}

function totalOf(rows: readonly Line[]): string {
  return `${sumOf(rows, 'calls')} calls, ${sumOf(rows, 'units')} units, ${sumOf(rows, 'refused')} refused`
}

function sumOf(rows: readonly Line[], name: 'calls' | 'units' | 'refused'): number {
  return rows.reduce((total, row) => total + row[name], 0)
}

/** Complete days as days, the last one included; other periods to the second. */
function periodText({ fromMs, toMs }: Period): string {
  if (fromMs % DAY_MS !== 0 || toMs % DAY_MS !== 0) return `from ${printTime(fromMs)} to ${printTime(toMs)} UTC`
  return `from ${printDay(fromMs)} to ${printDay(toMs - 1)} UTC`
}
