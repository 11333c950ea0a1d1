import { lookUp } from '../../../../access/provisioning/context.ts'
import type { UsageRow } from '../../../../access/store/model.ts'
import { parseSince } from '../../../dates.ts'
import type { CliContext, ListFlags } from '../../../define.ts'
import { FROM_COLUMN, printList } from '../../../output/print.ts'
import { openSession } from '../../../session.ts'

type UsageFlags = ListFlags & { sub?: string; since?: string; by?: 'hour' | 'day' | 'total' }

export async function usage(this: CliContext, flags: UsageFlags): Promise<void> {
  await using session = await openSession(this, flags, 'read')
  const only = flags.sub === undefined ? undefined : await lookUp(session.store, 'subscriptions', flags.sub)
  const fromMs = parseSince(flags.since ?? '30d', session.nowMs)
  const rows = await session.store.usage({ fromMs, ...(only === undefined ? {} : { subscriptionId: only.id }) })
  const names = new Map((await session.store.list('subscriptions')).map((sub) => [sub.id, sub.name]))
  const by = flags.by ?? 'total'
  printList(this, flags, {
    rows: group(rows, by),
    empty: 'no usage in this period',
    columns: [
      ...(by === 'total' ? [] : [FROM_COLUMN]),
      { title: 'SUBSCRIPTION', value: (row) => names.get(row.subscriptionId) ?? row.subscriptionId },
      { title: 'INTERFACE', value: (row) => row.interface },
      { title: 'CALLS', value: (row) => row.calls },
      { title: 'UNITS', value: (row) => row.units },
      { title: 'REFUSED', value: (row) => row.refused },
    ],
  })
}

/** Sums the hours of a day, or of the complete period. */
function group(rows: readonly UsageRow[], by: 'hour' | 'day' | 'total'): UsageRow[] {
  const spanMs = { hour: 3_600_000, day: 86_400_000, total: Number.POSITIVE_INFINITY }[by]
  const sums = new Map<string, UsageRow>()
  for (const row of rows) {
    const from = spanMs === Number.POSITIVE_INFINITY ? 0 : Math.floor(row.hour / spanMs) * spanMs
    const key = `${from} ${row.subscriptionId} ${row.interface}`
    const sum = sums.get(key)
    sums.set(key, {
      ...row,
      hour: from,
      calls: row.calls + (sum?.calls ?? 0),
      units: row.units + (sum?.units ?? 0),
      refused: row.refused + (sum?.refused ?? 0),
    })
  }
  return [...sums.values()].toSorted(
    (a, b) =>
      a.hour - b.hour || a.subscriptionId.localeCompare(b.subscriptionId) || a.interface.localeCompare(b.interface),
  )
}
