/** Sizes and durations as people write and read them: `1.4MiB`, `250ms`, `1h`, `1h30m`. */

export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

const DURATION_UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
}

const TEXT_CHARS_MAX = 40

/** Milliseconds, or undefined when the text is not a duration. A number needs its unit, except `0`. */
export function parseDuration(text: string): number | undefined {
  if (text.length > TEXT_CHARS_MAX) return undefined
  const trimmed = text.trim()
  if (trimmed === '0') return 0
  if (!/^(?:\d+(?:\.\d+)?\s*(?:ms|[smhdw])\s*)+$/.test(trimmed)) return undefined
  let totalMs = 0
  let previousUnitMs = Number.POSITIVE_INFINITY
  for (const [, amount, unit] of trimmed.matchAll(/(\d{1,40}(?:\.\d{1,40})?)\s*(ms|[smhdw])/g)) {
    const unitMs = DURATION_UNITS_MS[unit as string] as number
    // Units must decrease: `30m1h` or `1h1h` is more likely a mistake.
    if (unitMs >= previousUnitMs) return undefined
    previousUnitMs = unitMs
    totalMs += Number(amount) * unitMs
  }
  return Number.isSafeInteger(Math.round(totalMs)) ? Math.round(totalMs) : undefined
}

/** The rounded size: `1.4MiB`. */
export function printBytesShort(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const
  let value = bytes
  let at = 0
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024
    at += 1
  }
  return `${at === 0 ? value : value.toFixed(value < 10 ? 1 : 0)}${units[at]}`
}

/** The exact form: `1h30m`, `250ms`, `0`. Parses back to the same number. */
export function printDuration(durationMs: number): string {
  let leftMs = Math.round(durationMs)
  if (leftMs === 0) return '0'
  let text = leftMs < 0 ? '-' : ''
  leftMs = Math.abs(leftMs)
  for (const [unit, unitMs] of [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1000],
    ['ms', 1],
  ] as const) {
    const count = Math.floor(leftMs / unitMs)
    if (count > 0) text += `${count}${unit}`
    leftMs -= count * unitMs
  }
  return text
}

/** The two largest units: `3d4h`, `12m5s`. */
export function printDurationShort(durationMs: number): string {
  const parts = printDuration(durationMs).match(/-?\d{1,20}[a-z]{1,2}/g)
  return parts ? parts.slice(0, 2).join('') : '0'
}
