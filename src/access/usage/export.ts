import type { UsageExportFormat, UsageExportGrouping } from '../../contract/usage-export.ts'
import { DAY_MS } from '../../core/human-units.ts'
import { createTimeSlices } from '../../platform/process/time-slices.ts'
import { type Counts, sumCounts } from '../store/counts.ts'
import type { MethodUsageRow, Subscription, UsageRow } from '../store/model.ts'
import type { AccessStore } from '../store/store.ts'

export type UsageExport = {
  readonly fromMs: number
  readonly toMs: number
  /** The id of a customer; all without it. */
  readonly customerId?: string | undefined
  readonly by: UsageExportGrouping
  readonly format: UsageExportFormat
}

const COLUMNS = [
  'customer',
  'customer_id',
  'subscription',
  'subscription_id',
  'day',
  'interface',
  'method',
  'calls',
  'units',
  'refused',
  'bytes',
]

type ExportRow = Readonly<Record<string, string | number | null>>

/**
 * Usage of a period as lines of text, subscription by subscription in the order of their ids: a page of them and the usage of a few are in memory. The sums
 * are those of the ledger; with `method`, of what was counted by method, which has no bytes.
 */
export async function* exportUsage(store: AccessStore, given: UsageExport): AsyncGenerator<string> {
  const { header, line } = WRITERS[given.format]
  if (header !== undefined) yield `${header}\n`
  const slices = createTimeSlices()
  for await (const page of subscriptionPages(store, given.customerId)) {
    const customers = await store.getAll('customers', new Set(page.map(({ customerId }) => customerId)))
    for (let from = 0; from < page.length; from += READ_AT_ONCE) {
      if (slices.isSpent()) await slices.yield()
      const some = page.slice(from, from + READ_AT_ONCE)
      const usage = await Promise.all(some.map(({ id }) => readRows(store, given, id)))
      for (const [at, { id, name, customerId }] of some.entries()) {
        const customer = customers.get(customerId)?.name ?? customerId
        const of = { customer, customer_id: customerId, subscription: name, subscription_id: id }
        for (const row of usage[at] ?? []) yield `${line({ ...of, ...row })}\n`
      }
    }
  }
}

const PAGE_RECORDS = 500
/** Statements that a remote database has at a time, so that it does not wait for this process in between. */
const READ_AT_ONCE = 8

/** All subscriptions, or those of a customer, in the order of their ids: a rename meanwhile neither hides nor repeats one. */
export async function* subscriptionsById(
  store: AccessStore,
  customerId: string | undefined,
): AsyncGenerator<Subscription> {
  for await (const page of subscriptionPages(store, customerId)) yield* page
}

async function* subscriptionPages(
  store: AccessStore,
  customerId: string | undefined,
): AsyncGenerator<readonly Subscription[]> {
  const where = customerId === undefined ? undefined : { customerId }
  let after: string | undefined
  do {
    const page = await store.page('subscriptions', { order: 'id', after, limit: PAGE_RECORDS, where })
    yield page.items
    after = page.next ?? undefined
  } while (after !== undefined)
}

async function readRows(store: AccessStore, { fromMs, toMs, by }: UsageExport, id: string): Promise<ExportRow[]> {
  const filter = { subscriptionId: id, fromMs, toMs }
  const found: readonly (UsageRow | MethodUsageRow)[] =
    by === 'method' ? await store.methodUsage(filter) : await store.usage(filter)
  const sums = new Map<string, { day: string | null; interface: string; method: string | null; counts: Counts }>()
  for (const row of found) {
    const atMs = 'day' in row ? row.day : Math.floor(row.hour / DAY_MS) * DAY_MS
    const day = by === 'day' ? new Date(atMs).toISOString().slice(0, 10) : null
    const method = 'method' in row ? row.method : null
    const key = `${day} ${row.interface} ${method}`
    const counts = sumCounts(sums.get(key)?.counts, row)
    sums.set(key, { day, interface: row.interface, method, counts })
  }
  return [...sums.values()].map(({ counts, ...row }) => ({ ...row, ...counts }))
}

const WRITERS: Readonly<Record<UsageExportFormat, { header?: string; line(row: ExportRow): string }>> = {
  csv: { header: COLUMNS.join(','), line: (row) => csvLine(COLUMNS, row) },
  jsonl: { line: (row) => JSON.stringify(Object.fromEntries(COLUMNS.map((name) => [name, row[name] ?? null]))) },
}

export function csvLine(columns: readonly string[], row: ExportRow): string {
  return columns.map((name) => csvCell(row[name] ?? '')).join(',')
}

/** Names have no characters that need quotes; those of a restored store may, and none begins a formula. */
function csvCell(value: string | number): string {
  const text = typeof value === 'string' && /^[=+@\t\r-]/.test(value) ? `'${value}` : String(value)
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
