import { lookUp } from '../../../../access/provisioning/context.ts'
import type { Customer } from '../../../../access/store/model.ts'
import {
  groupUsage,
  readUsageLines,
  type UsageLine,
  type UsagePeriod,
  usagePeriodOf,
} from '../../../../access/usage/report.ts'
import { ServiceError } from '../../../../core/error.ts'
import { printDay, printTime } from '../../../dates.ts'
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

export async function usage(this: CliContext, flags: UsageFlags): Promise<void> {
  await using session = await openSession(this, flags, 'read')
  const by = flags.by ?? 'total'
  const period = usagePeriodOf(flags, session.nowMs)
  const selected = await selectedSubscriptions(session, flags)
  const read = async (grouping: typeof by) =>
    (await Promise.all(selected.map((id) => readUsageLines(session.store, grouping, period, id)))).flat()
  // Read before the methods: what is added meanwhile must not count as missing there.
  const total = by === 'method' ? await read('total') : []
  const lines = await read(by)
  const subscriptions = new Map((await session.store.list('subscriptions')).map((sub) => [sub.id, sub]))
  const nameOf = ({ subscriptionId }: UsageLine) => subscriptions.get(subscriptionId)?.name ?? subscriptionId
  const rows = groupUsage(lines, by).toSorted(
    (a, b) =>
      a.hour - b.hour ||
      nameOf(a).localeCompare(nameOf(b)) ||
      a.interface.localeCompare(b.interface) ||
      b.units - a.units,
  )
  const customers = new Map((await session.store.list('customers')).map((customer) => [customer.id, customer]))
  const customerOf = ({ subscriptionId }: UsageLine) =>
    customers.get(subscriptions.get(subscriptionId)?.customerId ?? '')
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

type Named = {
  readonly by: UsageFlags['by']
  nameOf(line: UsageLine): string
  customerOf(line: UsageLine): Customer | undefined
}

function columnsOf({ by, nameOf, customerOf }: Named): Column<UsageLine>[] {
  return [
    { title: 'SUBSCRIPTION', value: nameOf },
    { title: 'INTERFACE', value: (row) => row.interface },
    ...(by === 'method' ? [{ title: 'METHOD', value: (row: UsageLine) => row.method }] : []),
    { title: 'CALLS', value: (row) => row.calls },
    { title: 'UNITS', value: (row) => row.units },
    { title: 'REFUSED', value: (row) => row.refused },
    ...(by === 'method' ? [] : [{ title: 'BYTES', value: (row: UsageLine) => row.bytes ?? 0 }]),
    { title: 'CUSTOMER', value: (row) => customerOf(row)?.name, wide: true },
    { title: 'SUBSCRIPTION ID', value: (row) => row.subscriptionId, wide: true },
    { title: 'CUSTOMER ID', value: (row) => customerOf(row)?.id, wide: true },
  ]
}

function totalOf(rows: readonly UsageLine[]): string {
  const counts = `${sumOf(rows, 'calls')} calls, ${sumOf(rows, 'units')} units, ${sumOf(rows, 'refused')} refused`
  return rows.some(({ bytes }) => bytes !== undefined) ? `${counts}, ${sumOf(rows, 'bytes')} bytes` : counts
}

function sumOf(rows: readonly UsageLine[], name: 'calls' | 'units' | 'refused' | 'bytes'): number {
  return rows.reduce((total, row) => total + (row[name] ?? 0), 0)
}

const DAY_MS = 86_400_000

/** Complete days as days, the last one included; other periods to the second. */
function periodText({ fromMs, toMs }: UsagePeriod): string {
  if (fromMs % DAY_MS !== 0 || toMs % DAY_MS !== 0) return `from ${printTime(fromMs)} to ${printTime(toMs)} UTC`
  return `from ${printDay(fromMs)} to ${printDay(toMs - 1)} UTC`
}
