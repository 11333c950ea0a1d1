/** Periods of the usage views. Days are UTC, as in the store. */
export const PERIODS = ['today', 'yesterday', '7d', '30d', 'month', 'last-month'] as const
export type PeriodName = (typeof PERIODS)[number]

export const PERIOD_LABELS: Readonly<Record<PeriodName, string>> = {
  today: 'Today',
  yesterday: 'Yesterday',
  '7d': '7 days',
  '30d': '30 days',
  month: 'This month',
  'last-month': 'Last month',
}

export type Period = {
  /** The first and the last day, as the API takes them: `2026-11-16`. */
  readonly since: string
  readonly until: string
  /** In words, with both days. */
  readonly text: string
}

const DAY_MS = 86_400_000

export function periodNamed(text: string | undefined, fallback: PeriodName): PeriodName {
  return PERIODS.find((name) => name === text) ?? fallback
}

export function periodOf(name: PeriodName, nowMs: number): Period {
  const today = Math.floor(nowMs / DAY_MS) * DAY_MS
  const tomorrow = today + DAY_MS
  switch (name) {
    case 'today':
      return between(today, nowMs)
    case 'yesterday':
      return between(today - DAY_MS, today)
    case '7d':
      return between(tomorrow - 7 * DAY_MS, nowMs)
    case '30d':
      return between(tomorrow - 30 * DAY_MS, nowMs)
    case 'month':
      return between(monthStart(nowMs, 0), nowMs)
    case 'last-month':
      return between(monthStart(nowMs, -1), monthStart(nowMs, 0))
  }
}

/** The days of a period, oldest first, as `2026-11-16`. */
export function daysOf({ since, until }: Period): string[] {
  const days: string[] = []
  for (let at = Date.parse(since); at <= Date.parse(until) && days.length < 400; at += DAY_MS) days.push(dayText(at))
  return days
}

/** Months as the API takes them, `2026-11`, the present one first. */
export function recentMonths(nowMs: number, count: number): string[] {
  return Array.from({ length: count }, (_, ago) => dayText(monthStart(nowMs, -ago)).slice(0, 7))
}

function between(fromMs: number, toMs: number): Period {
  const [first, last] = [dayText(fromMs), dayText(Math.max(fromMs, toMs - 1))]
  return {
    since: first,
    until: last,
    text: first === last ? `${first} (UTC)` : `${first} to ${last} (UTC)`,
  }
}

function monthStart(nowMs: number, offset: number): number {
  const now = new Date(nowMs)
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + offset, 1)
}

function dayText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
