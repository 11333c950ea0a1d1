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

/** A part of a line without gaps, as `x,y` pairs. */
export type LinePart = {
  readonly pairs: string
  /** The way to the last value, which is not complete yet. */
  readonly isOpen: boolean
}

/** The parts of a line in a box of this size; y grows downwards. */
export function linesOf(points: readonly LinePoint[], box: { width: number; height: number }): LinePart[] {
  const high = Math.max(1, ...points.map(({ value }) => value ?? 0))
  const step = points.length > 1 ? box.width / (points.length - 1) : 0
  const pairs = points.map(({ value }, at) =>
    value === null ? null : `${(at * step).toFixed(1)},${(box.height - (value / high) * box.height).toFixed(1)}`,
  )
  const parts: string[][] = [[]]
  for (const pair of pairs.slice(0, -1)) {
    if (pair === null) parts.push([])
    else parts.at(-1)?.push(pair)
  }
  const drawn = parts.filter((part) => part.length > 0)
  const last = pairs.slice(-2).filter((pair) => pair !== null)
  return [
    ...drawn.map((part) => ({ pairs: joined(part), isOpen: false })),
    ...(pairs.at(-1) == null ? [] : [{ pairs: joined(last), isOpen: true }]),
  ]
}

/** A single point is drawn as a dot: a line of no length with round ends. */
function joined(part: readonly string[]): string {
  return (part.length === 1 ? [...part, ...part] : part).join(' ')
}
