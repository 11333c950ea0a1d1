import { ServiceError } from '../core/error.ts'
import { DAY_MS, parseDuration } from '../core/human-units.ts'

/** Later days have years of five digits, which dates are not written with; `Date` itself ends in the year 275760. */
const LAST_DAY_MS = Date.UTC(9999, 11, 31)

/** The end of a UTC day, or of the day a time span from now reaches; `never` is null. The last day is always complete. */
export function parseUntil(text: string, nowMs: number): number | null {
  if (text === 'never') return null
  const spanMs = parseDuration(text)
  const dayMs = spanMs !== undefined && spanMs > 0 ? nowMs + spanMs - 1 : parseDay(text)
  if (dayMs === undefined)
    throw new ServiceError(
      'invalid-value',
      `"${text}" is not a valid end date: write a day such as 2027-01-31, a time span such as 30d, or never`,
    )
  if (dayMs >= LAST_DAY_MS)
    throw new ServiceError('invalid-value', `"${text}" is not a valid end date: it is after the year 9999`, {
      fix: 'Write never for no end.',
    })
  return dayStart(dayMs) + DAY_MS
}

/** The start of a UTC day, or a time span before now. */
export function parseSince(text: string, nowMs: number): number {
  const spanMs = parseDuration(text)
  if (spanMs !== undefined && spanMs > 0) return Math.max(nowMs - spanMs, 0)
  const dayMs = parseDay(text)
  if (dayMs !== undefined) return dayMs
  throw new ServiceError(
    'invalid-value',
    `"${text}" is not a valid start date: write a day such as 2027-01-31 or a time span such as 7d`,
  )
}

/** The end of a past period: the end of a UTC day, or a time span before now. */
export function parsePastUntil(text: string, nowMs: number): number {
  const spanMs = parseDuration(text)
  if (spanMs !== undefined && spanMs > 0) return Math.max(nowMs - spanMs, 0)
  const dayMs = parseDay(text)
  if (dayMs !== undefined) return dayMs + DAY_MS
  throw new ServiceError(
    'invalid-value',
    `"${text}" is not a valid last day: write a day such as 2027-01-31 or a time span before now such as 7d`,
  )
}

/** A calendar month in UTC, from its first to the first of the next month. */
export function parseMonth(text: string): { readonly fromMs: number; readonly toMs: number } {
  const fromMs = parseDay(`${text}-01`)
  if (fromMs === undefined)
    throw new ServiceError('invalid-value', `"${text}" is not a month: write a year and a month such as 2027-01`)
  const first = new Date(fromMs)
  return { fromMs, toMs: Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 1) }
}

/** The start of the UTC day. */
export function dayStart(ms: number): number {
  return Math.floor(ms / DAY_MS) * DAY_MS
}

/** The start of a UTC day such as 2027-01-31; undefined for what is no day of the calendar. */
export function parseDay(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined
  const dayMs = Date.parse(`${text}T00:00:00Z`)
  // Date.parse rolls 2027-02-31 over into March, so a valid day must print back unchanged.
  return Number.isNaN(dayMs) || new Date(dayMs).toISOString().slice(0, 10) !== text ? undefined : dayMs
}
