import type { UsagePeriod } from '../../../../access/usage/report.ts'
import { DAY_MS } from '../../../../core/human-units.ts'
import { printDay, printTime } from '../../../dates.ts'
import type { CliContext, ListFlags } from '../../../define.ts'
import { openOperations } from '../../../operations/open.ts'
import { type NamedUsage, usageGroup } from '../../../operations/usage.ts'
import { type Column, FROM_COLUMN, printList, write } from '../../../output/print.ts'

export type UsageFlags = ListFlags & {
  readonly customer?: string
  readonly sub?: string
  readonly month?: string
  readonly since?: string
  readonly until?: string
  readonly by?: 'hour' | 'day' | 'total' | 'method'
}

export async function usage(this: CliContext, flags: UsageFlags): Promise<void> {
  await using on = await openOperations(usageGroup, this, flags, 'read')
  const by = flags.by ?? 'total'
  const report = await on.report({ ...flags, by })
  const { period, missingUnits, keepDays } = report
  const rows = report.rows.toSorted(
    (a, b) =>
      a.hour - b.hour ||
      a.subscription.localeCompare(b.subscription) ||
      a.interface.localeCompare(b.interface) ||
      b.units - a.units,
  )
  const kept = keepDays === undefined ? '' : `; usage is kept for ${keepDays} days`
  printList(this, flags, {
    rows,
    empty: `no usage ${periodText(period)}${kept}`,
    columns: [...(by === 'hour' || by === 'day' ? [FROM_COLUMN] : []), ...columnsOf(by)],
  })
  const isTable = flags.json !== true && (flags.output ?? 'table') !== 'json' && flags.output !== 'csv'
  if (isTable && rows.length > 0) write(this, `${periodText(period)}: ${totalOf(rows)}`)
  if (missingUnits > 0 && flags.json !== true)
    write(this, `${missingUnits} units of this period were used before methods were counted, and are not in this list`)
}

function columnsOf(by: UsageFlags['by']): Column<NamedUsage>[] {
  return [
    { title: 'SUBSCRIPTION', value: (row) => row.subscription },
    { title: 'INTERFACE', value: (row) => row.interface },
    ...(by === 'method' ? [{ title: 'METHOD', value: (row: NamedUsage) => row.method }] : []),
    { title: 'CALLS', value: (row) => row.calls },
    { title: 'UNITS', value: (row) => row.units },
    { title: 'REFUSED', value: (row) => row.refused },
    ...(by === 'method' ? [] : [{ title: 'BYTES', value: (row: NamedUsage) => row.bytes ?? 0 }]),
    { title: 'CUSTOMER', value: (row) => row.customer, wide: true },
    { title: 'SUBSCRIPTION ID', value: (row) => row.subscriptionId, wide: true },
    { title: 'CUSTOMER ID', value: (row) => row.customerId, wide: true },
  ]
}

function totalOf(rows: readonly NamedUsage[]): string {
  const counts = `${sumOf(rows, 'calls')} calls, ${sumOf(rows, 'units')} units, ${sumOf(rows, 'refused')} refused`
  return rows.some(({ bytes }) => bytes !== undefined) ? `${counts}, ${sumOf(rows, 'bytes')} bytes` : counts
}

function sumOf(rows: readonly NamedUsage[], name: 'calls' | 'units' | 'refused' | 'bytes'): number {
  return rows.reduce((total, row) => total + (row[name] ?? 0), 0)
}

/** Complete days as days, the last one included; other periods to the second. */
function periodText({ fromMs, toMs }: UsagePeriod): string {
  if (fromMs % DAY_MS !== 0 || toMs % DAY_MS !== 0) return `from ${printTime(fromMs)} to ${printTime(toMs)} UTC`
  return `from ${printDay(fromMs)} to ${printDay(toMs - 1)} UTC`
}
