const COUNT = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })
const COMPACT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 })

/** Shown where there is no number yet. */
export const NONE = '–'

export function formatCount(value: number | null | undefined): string {
  return value == null || !Number.isFinite(value) ? NONE : COUNT.format(value)
}

export function formatCompact(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return NONE
  return Math.abs(value) < 10_000 ? COUNT.format(value) : COMPACT.format(value)
}

/** `99.3`: always one decimal, so that the width does not change. */
export function formatPercent(value: number | null | undefined): string {
  return value == null || !Number.isFinite(value) ? NONE : value.toFixed(1)
}

export function formatMs(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return NONE
  if (value >= 10_000) return `${(value / 1000).toFixed(1)} s`
  return value >= 100 ? `${Math.round(value)} ms` : `${value.toFixed(1)} ms`
}

/** `0.4 s`, `12 s`, `3 min`, `2 h`. */
export function formatAge(ms: number | null | undefined): string {
  if (ms == null || !Number.isFinite(ms)) return NONE
  const seconds = Math.max(0, ms) / 1000
  if (seconds < 10) return `${seconds.toFixed(1)} s`
  if (seconds < 120) return `${Math.floor(seconds)} s`
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`
  return `${Math.floor(seconds / 3600)} h`
}

/** The time of day on this device: `14:03:22`; with the date where it is not that of today. */
export function formatTime(unixMs: number, nowMs = unixMs): string {
  const at = new Date(unixMs)
  const time = at.toTimeString().slice(0, 8)
  return at.toDateString() === new Date(nowMs).toDateString() ? time : `${dateOf(at)} ${time}`
}

/** `14:03`. */
export function formatClock(unixMs: number): string {
  return new Date(unixMs).toTimeString().slice(0, 5)
}

/** `2 min ago`. */
export function formatAgo(ms: number): string {
  return ms < 1000 ? 'now' : `${formatAge(ms)} ago`
}

function dateOf(at: Date): string {
  return `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, '0')}-${String(at.getDate()).padStart(2, '0')}`
}
