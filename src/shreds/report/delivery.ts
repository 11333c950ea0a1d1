import type { Clock } from '../../core/clock.ts'
import { messageOf } from '../../core/error.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { DestinationReport } from '../relay/protocol.ts'
import type { DeliveryRow, ReportStore } from './store.ts'

/** Adds up what each subscription got, hour by hour, and writes it down now and then. */
export type Delivery = AsyncDisposable & {
  take(reports: readonly DestinationReport[]): void
  flush(): Promise<void>
  /** Since the start, by subscription. */
  totals(subscriptionId: string): { readonly packets: number; readonly bytes: number; readonly unsent: number }
}

export type DeliveryDeps = { readonly store: ReportStore; readonly clock: Clock; readonly log: Logger }

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const FLUSH_MS = 2000
/** Rows that wait while the file cannot be written; beyond them the oldest are given up, and that is said. */
const ROWS_WAITING_MAX = 10_000
/** Subscriptions whose totals since the start are kept. */
const TOTALS_MAX = 10_000

export function startDelivery(options: { readonly reportDays: number }, { store, clock, log }: DeliveryDeps): Delivery {
  const waiting = new Map<string, DeliveryRow>()
  const totals = new Map<string, { packets: number; bytes: number; unsent: number }>()
  let writing: Promise<void> = Promise.resolve()
  let prunedHour = 0
  let isFailing = false

  async function write(): Promise<void> {
    const rows = [...waiting.values()]
    const hour = hourOf(clock.nowMs())
    if (rows.length === 0 && prunedHour === hour) return
    waiting.clear()
    try {
      if (rows.length > 0) await store.add(rows)
      if (prunedHour !== hour) await store.prune(hour - options.reportDays * DAY_MS)
      prunedHour = hour
      isFailing = false
    } catch (error) {
      for (const row of rows) keep(row)
      if (!isFailing) log.warn({ reason: messageOf(error) }, 'delivery reports cannot be written: kept in memory')
      isFailing = true
    }
  }

  function keep(row: DeliveryRow): void {
    const key = `${row.hour} ${row.subscriptionId}`
    const before = waiting.get(key)
    waiting.set(key, before === undefined ? row : sumOf(before, row))
    if (waiting.size <= ROWS_WAITING_MAX) return
    const [oldest] = waiting.keys()
    waiting.delete(oldest as string)
    log.warn('delivery reports given up: too many wait to be written')
  }

  function flush(): Promise<void> {
    writing = writing.then(write)
    return writing
  }

  const timer = clock.setRepeating(FLUSH_MS, () => void flush())
  timer.unref?.()
  return {
    take(reports) {
      const hour = hourOf(clock.nowMs())
      for (const report of reports) {
        const unsent = Object.values(report.unsent).reduce((sum, count) => sum + count, 0)
        if (report.packets + unsent + report.refusals + report.duplicates === 0) continue
        const { subscriptionId } = report.lease
        keep(rowOf(hour, report))
        const total = totals.get(subscriptionId) ?? { packets: 0, bytes: 0, unsent: 0 }
        total.packets += report.packets
        total.bytes += report.bytes
        total.unsent += unsent
        if (totals.size < TOTALS_MAX) totals.set(subscriptionId, total)
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

/** Adds up the hours of a day, or of the whole time, by subscription. */
export function sumDelivery(rows: readonly DeliveryRow[], by: 'hour' | 'day' | 'total'): DeliveryRow[] {
  const sums = new Map<string, DeliveryRow>()
  for (const row of rows) {
    const from = by === 'total' ? 0 : by === 'day' ? Math.floor(row.hour / DAY_MS) * DAY_MS : row.hour
    const key = `${from} ${row.subscriptionId}`
    const before = sums.get(key)
    sums.set(key, before === undefined ? { ...row, hour: from } : sumOf(before, row))
  }
  return [...sums.values()]
}

function hourOf(ms: number): number {
  return Math.floor(ms / HOUR_MS) * HOUR_MS
}

function rowOf(hour: number, report: DestinationReport): DeliveryRow {
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

function sumOf(a: DeliveryRow, b: DeliveryRow): DeliveryRow {
  const least = (x: number | null, y: number | null) => (x === null ? y : y === null ? x : Math.min(x, y))
  const most = (x: number | null, y: number | null) => (x === null ? y : y === null ? x : Math.max(x, y))
  return {
    hour: a.hour,
    subscriptionId: a.subscriptionId,
    packets: a.packets + b.packets,
    bytes: a.bytes + b.bytes,
    unsentRate: a.unsentRate + b.unsentRate,
    unsentTotalRate: a.unsentTotalRate + b.unsentTotalRate,
    unsentBuffer: a.unsentBuffer + b.unsentBuffer,
    unsentPaused: a.unsentPaused + b.unsentPaused,
    unsentError: a.unsentError + b.unsentError,
    refusals: a.refusals + b.refusals,
    slots: a.slots + b.slots,
    firstSlot: least(a.firstSlot, b.firstSlot),
    lastSlot: most(a.lastSlot, b.lastSlot),
    duplicates: a.duplicates + b.duplicates,
  }
}
