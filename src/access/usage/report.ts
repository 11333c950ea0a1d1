import { dayStart, parseMonth, parsePastUntil, parseSince } from '../../contract/dates.ts'
import { ServiceError } from '../../core/error.ts'
import { DAY_MS, HOUR_MS } from '../../core/human-units.ts'
import { type Counts, sumCounts } from '../store/counts.ts'
import type { UsageInterface } from '../store/model.ts'
import type { AccessStore } from '../store/store.ts'

export const USAGE_GROUPINGS = ['hour', 'day', 'total', 'method'] as const
export type UsageGrouping = (typeof USAGE_GROUPINGS)[number]

export type UsagePeriod = { readonly fromMs: number; readonly toMs: number }

/** A line of a usage report. `hour` is the start of its hour or day, 0 for the complete period. By method it has no bytes. */
export type UsageLine = Counts & {
  readonly subscriptionId: string
  readonly hour: number
  readonly interface: UsageInterface
  readonly method?: string
}

type PeriodRequest = {
  readonly month?: string | undefined
  readonly since?: string | undefined
  readonly until?: string | undefined
  readonly by?: string | undefined
}

/** The period of a report, aligned where `by` is given; `prefix` is written before the names of flags in errors. */
export function usagePeriodOf(request: PeriodRequest, nowMs: number, prefix: '--' | '' = '--'): UsagePeriod {
  const { month, since, until } = request
  if (month !== undefined) {
    if (since === undefined && until === undefined) return parseMonth(month)
    throw new ServiceError(
      'usage',
      `${prefix}month is a complete period: it goes without ${prefix}since and ${prefix}until`,
      { fix: `Use ${prefix}month alone, or ${prefix}since and ${prefix}until.` },
    )
  }
  const toMs = until === undefined ? nowMs : parsePastUntil(until, nowMs)
  // Without --since the 30 days before the end.
  const fromMs = since === undefined ? parseSince('30d', toMs) : parseSince(since, nowMs)
  if (fromMs < toMs) return request.by === undefined ? { fromMs, toMs } : alignPeriod(request.by, { fromMs, toMs })
  throw new ServiceError('invalid-value', 'the period ends before it begins', {
    fix: `Give a ${prefix}since that is before ${prefix}until.`,
  })
}

/** Usage is kept by hour, and by method by day: the period of the rows that are summed. One that begins within an hour or a day has all of it. */
export function alignPeriod(by: string, { fromMs, toMs }: UsagePeriod): UsagePeriod {
  if (by === 'day') return { fromMs: dayStart(fromMs), toMs }
  if (by === 'method') return { fromMs: dayStart(fromMs), toMs: dayStart(toMs - 1) + DAY_MS }
  return { fromMs: Math.floor(fromMs / HOUR_MS) * HOUR_MS, toMs }
}

/** The rows of one subscription, or of all. */
export async function readUsageLines(
  store: Pick<AccessStore, 'usage' | 'methodUsage'>,
  by: UsageGrouping,
  period: UsagePeriod,
  subscriptionId: string | undefined,
): Promise<UsageLine[]> {
  const filter = { ...period, ...(subscriptionId === undefined ? {} : { subscriptionId }) }
  if (by !== 'method') return store.usage(filter)
  return (await store.methodUsage(filter)).map(({ day, ...row }) => ({ ...row, hour: day }))
}

const SPANS_MS = { hour: HOUR_MS, day: DAY_MS, total: undefined, method: undefined }

export type UsageSums = Map<string, UsageLine>

/** Adds a line to the sum of its hour or day, or of the complete period. */
export function addUsageLine(sums: UsageSums, line: UsageLine, by: UsageGrouping): void {
  const spanMs = SPANS_MS[by]
  const hour = spanMs === undefined ? 0 : Math.floor(line.hour / spanMs) * spanMs
  const key = JSON.stringify([hour, line.subscriptionId, line.interface, line.method])
  sums.set(key, { ...line, hour, ...sumCounts(sums.get(key), line) })
}

/** Sums the hours of a day, or of the complete period. */
export function groupUsage(lines: readonly UsageLine[], by: UsageGrouping): UsageLine[] {
  const sums: UsageSums = new Map()
  for (const line of lines) addUsageLine(sums, line, by)
  return [...sums.values()]
}
