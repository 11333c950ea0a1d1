import { NONE } from '../format.ts'

const DAY_MS = 86_400_000

/** `2026-11-16 14:03`, UTC. */
export function showTime(iso: string | null | undefined): string {
  return iso == null ? NONE : iso.slice(0, 16).replace('T', ' ')
}

const SPANS = [
  { ms: DAY_MS, unit: 'd' },
  { ms: 3_600_000, unit: 'h' },
  { ms: 60_000, unit: 'min' },
] as const

/** `3 min ago`, `in 2 d`, `now`; nothing where there is no time. */
export function showAgo(iso: string | null | undefined, nowMs: number): string {
  const atMs = iso == null ? Number.NaN : Date.parse(iso)
  if (Number.isNaN(atMs)) return ''
  const apartMs = Math.abs(nowMs - atMs)
  // Two of a unit before it is used: `90 min ago` is more exact than `1 h ago`.
  const span = SPANS.find(({ ms }) => apartMs >= 2 * ms) ?? SPANS.find(({ ms }) => apartMs >= ms)
  if (span === undefined) return 'now'
  const text = `${Math.floor(apartMs / span.ms)} ${span.unit}`
  return atMs <= nowMs ? `${text} ago` : `in ${text}`
}

/** The last day on which a subscription works; its end is the start of the day after. */
export function showLastDay(iso: string | null | undefined): string {
  if (iso == null) return 'no end'
  const ms = Date.parse(iso)
  return Number.isNaN(ms) ? iso : new Date(ms - 1).toISOString().slice(0, 10)
}

/** `ends in 3 days`, `ended`, or nothing where there is no end. */
export function showDaysLeft(iso: string | null | undefined, nowMs: number): string {
  if (iso == null) return ''
  const left = Date.parse(iso) - nowMs
  if (left <= 0) return 'ended'
  const days = Math.ceil(left / DAY_MS)
  return days === 1 ? 'ends today' : `ends in ${days} days`
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB']

/** `1.2 GB`. */
export function showBytes(bytes: number | null | undefined): string {
  if (bytes == null || !Number.isFinite(bytes)) return NONE
  let value = bytes
  let at = 0
  while (value >= 1000 && at < UNITS.length - 1) {
    value /= 1000
    at += 1
  }
  return `${at === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${UNITS[at]}`
}

/** `3 d 4 h`, `12 min`, `40 s`. */
export function showSeconds(seconds: number | null | undefined): string {
  if (seconds == null || !Number.isFinite(seconds)) return NONE
  const whole = Math.floor(seconds)
  if (whole < 120) return `${whole} s`
  if (whole < 7200) return `${Math.floor(whole / 60)} min`
  if (whole < 2 * 86_400) return `${Math.floor(whole / 3600)} h`
  return `${Math.floor(whole / 86_400)} d ${Math.floor((whole % 86_400) / 3600)} h`
}
