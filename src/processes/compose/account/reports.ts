import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { AccessStore } from '../../../access/store/store.ts'
import { addUsageLine, readUsageLines, type UsageLine, type UsageSums } from '../../../access/usage/report.ts'
import { isoTime, toWireJson } from '../../../contract/wire-json.ts'
import { messageOf } from '../../../core/error.ts'
import { DAY_MS, HOUR_MS } from '../../../core/human-units.ts'
import type {
  AccountReports,
  DeliveryReport,
  NoReport,
  TokenReport,
  UsageQuery,
} from '../../../gateway/account/reports.ts'
import type { BaseDeps } from '../../../platform/process/base-deps.ts'
import { createTimeSlices } from '../../../platform/process/time-slices.ts'
import { type DelayQuantiles, delayQuantiles } from '../../../shreds/report/delays.ts'
import { sumDelivery } from '../../../shreds/report/delivery-reports.ts'
import { type DeliveryRow, openReportStore } from '../../../shreds/report/store.ts'
import type { Shreds } from '../../../shreds/service.ts'
import { REPORT_FILE } from '../services/shreds.ts'
import { createBoundedReads } from './bounded-reads.ts'

/** Read at once: some hundred rows of one subscription. The event loop runs other work in between. */
const PART_MS = 8 * DAY_MS
/** Rows of one report; 92 days of five interfaces are about 11,000. */
const ROWS_MAX = 50_000
/** `accountReports`: how many are read, and wait, at a time; of one subscription as many as two pages of the account open. */
const READS = { runningMax: 2, waitingMax: 48, perOwnerMax: 8, deadlineMs: 3000 }
const DELIVERY_MS = DAY_MS

export type AccountReportsDeps = BaseDeps & {
  readonly store: Pick<AccessStore, 'usage' | 'methodUsage' | 'find'>
  readonly stateDir: string
  /** Where the relay runs in this process. */
  readonly shreds?: Pick<Shreds, 'status'> | undefined
}

/** Account reports as the control plane reads them: few at a time, each within a deadline, for a store that may be busy. */
export function createAccountReports({
  store,
  stateDir,
  shreds,
  clock,
  random,
  log,
}: AccountReportsDeps): AccountReports {
  const reads = createBoundedReads(READS, clock)
  const reportFile = join(stateDir, ...REPORT_FILE)

  async function bounded<Report extends { readonly ok: true }>(
    subscriptionId: string,
    read: () => Promise<Report>,
  ): Promise<Report | NoReport> {
    try {
      const result = await reads.run(subscriptionId, read)
      return result.ok ? result.value : result
    } catch (error) {
      log.warn({ reason: messageOf(error) }, 'an account report could not be read')
      return { ok: false, reason: 'failed' }
    }
  }

  async function usageOf({ subscriptionId, by, fromMs, toMs }: UsageQuery & { subscriptionId: string }) {
    const sums: UsageSums = new Map()
    const slices = createTimeSlices()
    const asOfMs = clock.nowMs()
    let rows = 0
    for (let at = fromMs; at < toMs; at += PART_MS) {
      const part = { fromMs: at, toMs: Math.min(at + PART_MS, toMs) }
      const found = await readUsageLines(store, by, part, subscriptionId)
      rows += found.length
      if (rows > ROWS_MAX) throw new Error(`a usage report reads at most ${ROWS_MAX} rows`)
      for (const line of found) addUsageLine(sums, line, by)
      if (slices.isSpent()) await slices.yield()
    }
    return { ok: true, lines: [...sums.values()].toSorted(inOrder), asOfMs } as const
  }

  async function tokensOf(subscriptionId: string) {
    const found = await store.find('tokens', { subscriptionId })
    const nowMs = clock.nowMs()
    const tokens = found.flatMap(({ last4, state, createdAt, notAfter }): TokenReport[] => {
      if (state === 'revoked' || (state === 'retiring' && notAfter !== null && notAfter < nowMs)) return []
      return [{ last4, state, created_at: new Date(createdAt).toISOString(), valid_until: isoTime(notAfter) }]
    })
    return { ok: true, tokens } as const
  }

  async function deliveryOf(subscriptionId: string): Promise<DeliveryReport & { ok: true }> {
    const own = shreds?.status().destinations.find((one) => one.subscriptionId === subscriptionId)
    const refused = shreds?.status().refused.find((one) => one.subscriptionId === subscriptionId)
    return {
      ok: true,
      state: own?.state ?? (refused === undefined ? null : `refused: ${refused.reason}`),
      last_fault: own?.lastFault ?? null,
      delivery: existsSync(reportFile) ? await readDelivery(subscriptionId) : null,
    }
  }

  async function readDelivery(subscriptionId: string): Promise<object> {
    const toMs = clock.nowMs()
    const fromMs = Math.floor((toMs - DELIVERY_MS) / HOUR_MS) * HOUR_MS
    await using file = await openReportStore(reportFile, { clock, random, create: false })
    const rows: DeliveryRow[] = []
    for await (const page of file.pages({ fromMs, toMs, subscriptionId })) rows.push(...page)
    const [total] = sumDelivery(rows, 'total')
    const delays = await file.delays({ fromMs, toMs })
    const [ofHour, ofAll] = [delayQuantiles(delays, 'hour'), delayQuantiles(delays, 'total')]
    return {
      from: isoTime(fromMs),
      to: isoTime(toMs),
      lines: sumDelivery(rows, 'hour').map(({ hour, ...row }) => ({
        hour: isoTime(hour),
        ...wireDelivery(row, ofHour(hour)),
      })),
      totals: total === undefined ? null : wireDelivery(total, ofAll(0)),
    }
  }

  return {
    usage: (request) => bounded(request.subscriptionId, () => usageOf(request)),
    tokens: (subscriptionId) => bounded(subscriptionId, () => tokensOf(subscriptionId)),
    delivery: (subscriptionId) => bounded(subscriptionId, () => deliveryOf(subscriptionId)),
  }
}

function inOrder(a: UsageLine, b: UsageLine): number {
  return a.hour - b.hour || b.units - a.units || (a.interface < b.interface ? -1 : 1)
}

function wireDelivery(row: Omit<DeliveryRow, 'hour'>, delays: DelayQuantiles): object {
  const {
    firstSlot,
    lastSlot,
    packets,
    bytes,
    slots,
    unsentRate,
    unsentTotalRate,
    unsentBuffer,
    unsentPaused,
    unsentError,
  } = row
  const unsent = unsentRate + unsentTotalRate + unsentBuffer + unsentPaused + unsentError
  return toWireJson({ packets, bytes, unsent, slots, firstSlot, lastSlot, ...delays }) as object
}

/** The methods that a gateway thread calls. */
export function accountReportMethods(reports: AccountReports) {
  return {
    'account-usage': reports.usage,
    'account-tokens': reports.tokens,
    'account-delivery': reports.delivery,
  }
}
