import type { FamilyReading } from './family-reader.ts'
import type { FamilyShape, MergeRule } from './metric-memory.ts'

export type MergedSeries = { readonly labels: Readonly<Record<string, string>>; readonly cells: readonly number[] }

/** The series that several threads have of one metric, each once. Values of the same labels are merged by the rule of the metric. */
export function mergeReadings({ labels, merge }: FamilyShape, readings: readonly FamilyReading[]): MergedSeries[] {
  const lists = labels.map((_, at) => unionOf(readings.map((reading) => reading.labels[at] ?? [])))
  const merged = new Map<number, readonly number[]>()
  for (const reading of readings) {
    const rankOf = rankIn(lists, reading)
    for (const { index, cells } of reading.series) {
      const rank = rankOf(index)
      const others = merged.get(rank)
      merged.set(rank, others === undefined ? cells : mergeCells(merge, others, cells))
    }
  }
  return [...merged]
    .sort(([a], [b]) => a - b)
    .map(([rank, cells]) => {
      let rest = rank
      const texts: [string, string][] = []
      for (let at = labels.length - 1; at >= 0; at--) {
        const list = lists[at] as string[]
        texts.unshift([labels[at]?.name as string, list[rest % list.length] as string])
        rest = Math.floor(rest / list.length)
      }
      return { labels: Object.fromEntries(texts), cells }
    })
}

/** The index of a series in the joined lists, from its index in those of the thread: the last label changes fastest. */
function rankIn(lists: readonly string[][], { labels }: FamilyReading): (index: number) => number {
  // The usual case: all threads have the same lists.
  if (lists.every((list, at) => isEqual(list, labels[at] ?? []))) return (index) => index
  const positions = lists.map((list) => new Map(list.map((value, at) => [value, at])))
  const places = labels.map((texts, at) => texts.map((text) => positions[at]?.get(text as string) ?? 0))
  return (index) => {
    let rest = index
    let rank = 0
    let stride = 1
    for (let at = lists.length - 1; at >= 0; at--) {
      const own = places[at] as number[]
      rank += (own[rest % own.length] as number) * stride
      stride *= (lists[at] as string[]).length
      rest = Math.floor(rest / own.length)
    }
    return rank
  }
}

function isEqual(a: readonly string[], b: readonly (string | undefined)[]): boolean {
  return a.length === b.length && a.every((value, at) => value === b[at])
}

/** All values in the order in which they first occur. */
export function unionOf(lists: readonly (readonly (string | undefined)[])[]): string[] {
  const union = new Set<string>()
  for (const list of new Set(lists)) for (const value of list) if (value !== undefined) union.add(value)
  return [...union]
}

export function mergeCells(rule: MergeRule, a: readonly number[], b: readonly number[]): number[] {
  const merged: number[] = []
  for (let at = 0; at < a.length; at++) merged.push(mergeValues(rule, a[at] as number, b[at] as number))
  return merged
}

/** A thread that does not know the value (NaN) does not hide that of another one from a minimum or maximum. */
function mergeValues(rule: MergeRule, a: number, b: number): number {
  if (rule === 'sum') return a + b
  if (Number.isNaN(a)) return b
  if (Number.isNaN(b)) return a
  return rule === 'max' ? Math.max(a, b) : Math.min(a, b)
}
