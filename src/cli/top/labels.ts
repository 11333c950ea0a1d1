import { printBytesShort } from '../../core/human-units.ts'

/** Figures with at most four digits, so that columns keep their width. */
export function printRate(perSecond: number): string {
  if (perSecond === 0) return '0'
  if (perSecond < 10) return perSecond.toFixed(1)
  return printCount(perSecond)
}

export function printCount(count: number): string {
  const whole = Math.round(count)
  if (whole < 100_000) return withCommas(whole)
  if (whole < 10_000_000) return `${(whole / 1e3).toFixed(0)}k`
  if (whole < 10_000_000_000) return `${(whole / 1e6).toFixed(0)}M`
  return `${(whole / 1e9).toFixed(0)}G`
}

/** Slots and other identifiers are never rounded. */
export function withCommas(whole: number): string {
  return whole.toLocaleString('en-US', { maximumFractionDigits: 20 })
}

/** Three digits of what is below a second. */
export function printMillis(seconds: number): string {
  const ms = seconds * 1000
  return `${ms < 10 ? ms.toFixed(2) : ms < 100 ? ms.toFixed(1) : ms.toFixed(0)} ms`
}

export function printBytesRate(bytesPerSecond: number): string {
  return `${printBytesShort(Math.round(bytesPerSecond))}/s`
}

const BARS = '▁▂▃▄▅▆▇█'

/** The last values as a row of bars, the newest on the right. */
export function sparkline(values: readonly number[], width: number): string {
  const shown = values.slice(-width)
  const most = Math.max(...shown, 0)
  const bar = (value: number) => BARS[most === 0 ? 0 : Math.min(7, Math.ceil((value / most) * 7))] ?? ' '
  return shown.map(bar).join('').padStart(width)
}
