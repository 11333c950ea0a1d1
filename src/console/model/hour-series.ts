import type { SeriesRecord } from '../client/wire.ts'

export type LinePoint = {
  /** When, in words: `2026-11-16 14:00`. */
  readonly label: string
  /** Null interrupts the line. */
  readonly value: number | null
}

/** One line of the hours. The last hour is not over: its value is what was counted so far. */
export function hourPoints({ items }: SeriesRecord, of: 'calls' | 'units' | 'refused'): LinePoint[] {
  return items.map((item) => ({ label: item.from.slice(0, 16).replace('T', ' '), value: item[of] }))
}

export function sumOf(points: readonly LinePoint[]): number {
  return points.reduce((sum, { value }) => sum + (value ?? 0), 0)
}

/** Parts of a line without gaps, each as `x,y` pairs in a box of this size; y grows downwards. */
export function linesOf(points: readonly LinePoint[], { width, height }: { width: number; height: number }): string[] {
  const high = Math.max(1, ...points.map(({ value }) => value ?? 0))
  const step = points.length > 1 ? width / (points.length - 1) : 0
  const parts: string[][] = [[]]
  for (const [at, { value }] of points.entries()) {
    if (value === null) parts.push([])
    else parts.at(-1)?.push(`${(at * step).toFixed(1)},${(height - (value / high) * height).toFixed(1)}`)
  }
  // A single point between gaps is drawn as a dot: a line of no length with round ends.
  return parts
    .filter((part) => part.length > 0)
    .map((part) => (part.length === 1 ? [...part, ...part] : part).join(' '))
}
