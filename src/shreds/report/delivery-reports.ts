import { Calendar } from '../../access/quota/calendar.ts'
import { setBounded } from '../../core/bounded-map.ts'
import type { Clock } from '../../core/clock.ts'
import { messageOf } from '../../core/error.ts'
import { DAY_MS, HOUR_MS } from '../../core/human-units.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { DestinationReport, RelayReport } from '../relay/protocol.ts'
import { type DeliveryRow, type ReportStore, SUM_NAMES } from './store.ts'

/** Sums deliveries per subscription and hour, and writes them to the report store every FLUSH_MS. */
export type DeliveryReports = AsyncDisposable & {
  record(report: Pick<RelayReport, 'destinations' | 'delays'>): void
  flush(): Promise<void>
  /** Since the start, by subscription. */
  totals(subscriptionId: string): { readonly packets: number; readonly bytes: number; readonly unsent: number }
}

export type DeliveryReportsDeps = { readonly store: ReportStore; readonly clock: Clock; readonly log: Logger }

const FLUSH_MS = 2000
/** Rows held while the file cannot be written: those of two hours with the most destinations. Beyond it the oldest are dropped, which is logged once. */
export const PENDING_ROWS_MAX = 20_000
/** Hours whose delays are held while the file cannot be written. */
const PENDING_HOURS_MAX = 100
/** Subscriptions whose totals since the start are held; beyond this, that which was sent nothing for the longest time begins at 0 again. */
export const TOTALS_MAX = 10_000

export function startDeliveryReports(
  options: { readonly reportDays: number; readonly recordedMs?: number | undefined },
  { store, clock, log }: DeliveryReportsDeps,
): DeliveryReports {
  const pending = new Map<string, SummedRow>()
  /** By hour; few, since each flush writes them. */
  const pendingDelays = new Map<number, number[]>()
  const totals = new Map<string, { packets: number; bytes: number; unsent: number }>()
  /** Not the wall clock: one that is set wrong for a moment would delete reports and put others into an hour of another year. */
  const calendar = new Calendar(clock, options)
  let writing: Promise<void> = Promise.resolve()
  let prunedHour = 0
  let isFailing = false
  let isDropping = false
  let isPruneFailing = false

  /** Its start, unix ms. */
  function currentHour(): number {
    calendar.update(clock.monotonicMs())
    return calendar.hour * HOUR_MS
  }

  async function write(): Promise<void> {
    await writePending()
    await prune()
  }

  async function writePending(): Promise<void> {
    const rows = [...pending.values()]
    const delays = [...pendingDelays].map(([hour, packets]) => ({ hour, packets }))
    if (rows.length + delays.length === 0) return
    pending.clear()
    pendingDelays.clear()
    try {
      await store.add(rows, delays)
      isFailing = false
      isDropping = false
    } catch (error) {
      for (const row of rows) add(row)
      for (const { hour, packets } of delays) addDelays(hour, packets)
      if (!isFailing) log.warn({ reason: messageOf(error) }, 'delivery reports cannot be written: held in memory')
      isFailing = true
    }
  }

  /** Once an hour, over several flushes where there is much to delete. Apart from the rows: those that were written are not written again when this fails. */
  async function prune(): Promise<void> {
    const hour = currentHour()
    // The clock of a process that has just started may be wrong until the machine has reached a time server.
    if (prunedHour === hour || !calendar.isSettled(clock.monotonicMs())) return
    try {
      if (await store.prune(hour - options.reportDays * DAY_MS)) prunedHour = hour
      isPruneFailing = false
    } catch (error) {
      if (!isPruneFailing) log.warn({ reason: messageOf(error) }, 'old delivery reports cannot be deleted')
      isPruneFailing = true
    }
  }

  function add(row: SummedRow): void {
    const key = `${row.hour} ${row.subscriptionId}`
    const before = pending.get(key)
    if (before !== undefined) return addTo(before, row)
    pending.set(key, row)
    if (pending.size <= PENDING_ROWS_MAX) return
    const [oldest] = pending.keys()
    pending.delete(oldest as string)
    if (!isDropping) log.warn('oldest delivery reports dropped: too many wait to be written')
    isDropping = true
  }

  function addDelays(hour: number, packets: readonly number[]): void {
    if (packets.every((count) => count === 0)) return
    const before = pendingDelays.get(hour)
    const sums = packets.map((count, at) => count + (before?.[at] ?? 0))
    setBounded(pendingDelays, hour, sums, PENDING_HOURS_MAX)
  }

  function flush(): Promise<void> {
    writing = writing.then(write)
    return writing
  }

  const timer = clock.setRepeating(FLUSH_MS, () => void flush())
  timer.unref?.()
  return {
    record({ destinations, delays }) {
      const hour = currentHour()
      addDelays(hour, delays.packets)
      for (const report of destinations) {
        const unsent = Object.values(report.unsent).reduce((sum, count) => sum + count, 0)
        if (report.packets + unsent + report.refusals + report.duplicates === 0) continue
        const { subscriptionId } = report.lease
        add(rowOf(hour, report))
        const total = totals.get(subscriptionId) ?? { packets: 0, bytes: 0, unsent: 0 }
        total.packets += report.packets
        total.bytes += report.bytes
        total.unsent += unsent
        totals.delete(subscriptionId)
        setBounded(totals, subscriptionId, total, TOTALS_MAX)
      }
    },
    flush,
    totals: (subscriptionId) => totals.get(subscriptionId) ?? { packets: 0, bytes: 0, unsent: 0 },
    async [Symbol.asyncDispose]() {
      timer.cancel()
      await flush()
    },
  }
}

export type DeliveryGrouping = 'hour' | 'day' | 'total'

/** The start of the hour or day of a row; 0 for all time. */
export function deliveryStart(hour: number, by: DeliveryGrouping): number {
  return by === 'total' ? 0 : by === 'day' ? Math.floor(hour / DAY_MS) * DAY_MS : hour
}

/** Sums the rows of each subscription per hour, per day or over all time. */
export function sumDelivery(rows: readonly DeliveryRow[], by: DeliveryGrouping): DeliveryRow[] {
  const sums = new Map<string, SummedRow>()
  for (const row of rows) {
    const from = deliveryStart(row.hour, by)
    const key = `${from} ${row.subscriptionId}`
    const before = sums.get(key)
    if (before === undefined) sums.set(key, { ...row, hour: from })
    else addTo(before, row)
  }
  return [...sums.values()]
}

function rowOf(hour: number, report: DestinationReport): SummedRow {
  return {
    hour,
    subscriptionId: report.lease.subscriptionId,
    packets: report.packets,
    bytes: report.bytes,
    unsentRate: report.unsent.rate,
    unsentTotalRate: report.unsent['total-rate'],
    unsentBuffer: report.unsent.buffer,
    unsentPaused: report.unsent.paused,
    unsentError: report.unsent.error,
    refusals: report.refusals,
    slots: report.slots,
    firstSlot: report.firstSlot ?? null,
    lastSlot: report.lastSlot ?? null,
    duplicates: report.duplicates,
  }
}

/** Changed in place: thousands of destinations report five times a second. */
type SummedRow = { -readonly [Field in keyof DeliveryRow]: DeliveryRow[Field] }

function addTo(sum: SummedRow, row: DeliveryRow): void {
  for (const name of SUM_NAMES) sum[name] += row[name]
  sum.firstSlot = ofBoth(Math.min, sum.firstSlot, row.firstSlot)
  sum.lastSlot = ofBoth(Math.max, sum.lastSlot, row.lastSlot)
}

function ofBoth(choose: (x: number, y: number) => number, a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b
  return choose(a, b)
}
