import assert from 'node:assert/strict'
import type { BucketCounts } from './bucket-quantile.ts'
import type { FamilyReader } from './family-reader.ts'
import { withFormerNames } from './former-names.ts'
import { mergeCells, mergeReadings, unionOf } from './merge-readings.ts'
import { type FormerNames, type MergeRule, type MetricType, sizeOf } from './metric-memory.ts'
import { OTHER } from './metric-series.ts'
import { contentTypeOf, type MetricsFormat, type PrintedFamily, printMetrics, type Sample } from './metrics-text.ts'

export type MetricDescription = {
  name: string
  help: string
  type: MetricType
  labels: Record<string, readonly string[]>
  buckets?: readonly number[]
  /** How the values of threads become one; only for gauges. */
  merge?: MergeRule
  former?: FormerNames
  /** The most series this metric can have. */
  seriesMax: number
}

/** Metrics as they are served: those of one registry, or of all threads of a process. */
export type MetricsView = {
  /** All metrics, or those that `isShown` selects by name. */
  text(format?: MetricsFormat, isShown?: (name: string) => boolean): Promise<string>
  contentType(format?: MetricsFormat): string
  /** Every metric, for generated documents and for the dashboard tests. */
  describe(): MetricDescription[]
  /** The current value of one series (the count, for a histogram); undefined when it has none yet. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined
  /** The counts of one series of a histogram; undefined when it has none yet. */
  buckets(name: string, labels?: Readonly<Record<string, string>>): BucketCounts | undefined
}

/** The metrics of one thread, by name. */
export type FamilyReaders = ReadonlyMap<string, FamilyReader>

/** A view of the metrics of one or several threads. A metric that several of them have is merged. */
export function createMetricsView(threads: () => Iterable<FamilyReaders>): MetricsView {
  /** The readers of each metric, in the order of the threads. */
  function byName(): Map<string, [FamilyReader, ...FamilyReader[]]> {
    const found = new Map<string, [FamilyReader, ...FamilyReader[]]>()
    for (const readers of threads()) {
      for (const [name, reader] of readers) {
        const others = found.get(name)
        if (others === undefined) found.set(name, [reader])
        else {
          assert(others[0].kind === reader.kind, `${name} differs between threads`)
          others.push(reader)
        }
      }
    }
    return found
  }

  /** One series of a metric, merged over the threads that have it. */
  function seriesOf(name: string, labels: Readonly<Record<string, string>> | undefined) {
    const readers = [...threads()].flatMap((one) => one.get(name) ?? [])
    const [first] = readers
    if (first === undefined) return undefined
    const known = knownLabels(readers, labels)
    const all = readers.flatMap((reader) => {
      const cells = reader.cellsAt(known)
      return cells === undefined ? [] : [cells]
    })
    if (all.length === 0) return undefined
    return { family: first.family, cells: all.reduce((a, b) => mergeCells(first.family.merge, a, b)) }
  }

  return {
    text: (format = 'prometheus', isShown = () => true) =>
      printMetrics(
        [...byName()].filter(([name]) => isShown(name)).flatMap(([, readers]) => printed(readers)),
        format,
      ),
    contentType: contentTypeOf,
    describe: () =>
      [...byName().values()].map((readers) => describe(readers)).sort((a, b) => (a.name < b.name ? -1 : 1)),
    value(name, labels) {
      const { family, cells } = seriesOf(name, labels) ?? {}
      if (family === undefined || cells === undefined) return undefined
      return family.type === 'histogram' ? countOf(cells) : cells[0]
    },
    buckets(name, labels) {
      const { family, cells } = seriesOf(name, labels) ?? {}
      if (family?.type !== 'histogram' || cells === undefined) return undefined
      return { bounds: family.buckets, counts: cells.slice(0, -1) }
    },
  }
}

/** A value that no thread lists is counted as `other`; one that some thread lists is not that of the others' `other`. */
function knownLabels(readers: readonly FamilyReader[], labels: Readonly<Record<string, string>> = {}) {
  const known: Record<string, string> = {}
  for (const reader of readers) {
    for (const [at, texts] of reader.labels().entries()) {
      const name = reader.family.labels[at]?.name as string
      const value = labels[name]
      if (value !== undefined && texts.includes(value)) known[name] = value
    }
  }
  return known
}

function describe(readers: readonly [FamilyReader, ...FamilyReader[]]): MetricDescription {
  const { name, help, type, merge, labels, buckets, former } = readers[0].family
  const all = readers.map((reader) => reader.labels())
  const lists = labels.map((_, at) => unionOf(all.map((texts) => texts[at] ?? [])))
  const sizes = lists.map((list, at) =>
    Math.max(list.length, ...readers.map(({ family }) => sizeOf(family.labels[at] as (typeof labels)[number]))),
  )
  const samplesPerSeries = type === 'histogram' ? buckets.length + 3 : 1
  return {
    name,
    help,
    type,
    labels: Object.fromEntries(labels.map((label, at) => [label.name, withOtherLast(lists[at] ?? [])])),
    ...(type === 'histogram' ? { buckets } : {}),
    ...(type === 'gauge' ? { merge } : {}),
    ...(former === undefined ? {} : { former }),
    seriesMax: sizes.reduce((product, size) => product * size, samplesPerSeries),
  }
}

function withOtherLast(values: readonly string[]): string[] {
  return [...values.filter((value) => value !== OTHER), OTHER]
}

function printed(readers: readonly [FamilyReader, ...FamilyReader[]]): PrintedFamily[] {
  const { family } = readers[0]
  const series = mergeReadings(
    family,
    readers.map((reader) => reader.read()),
  )
  const { name, help, type, buckets } = family
  const samples =
    type === 'histogram'
      ? series.flatMap(({ labels, cells }) => histogramSamples(name, buckets, labels, cells))
      : series.map(({ labels, cells }) => ({ labels, value: cells[0] as number }))
  return withFormerNames({ name, help, type, samples }, family.former)
}

function histogramSamples(
  name: string,
  bounds: readonly number[],
  labels: Readonly<Record<string, string>>,
  cells: readonly number[],
): Sample[] {
  const samples: Sample[] = []
  let below = 0
  for (let at = 0; at <= bounds.length; at++) {
    below += cells[at] as number
    samples.push({ metricName: `${name}_bucket`, labels: { ...labels, le: bounds[at] ?? '+Inf' }, value: below })
  }
  samples.push({ metricName: `${name}_sum`, labels, value: cells.at(-1) as number })
  samples.push({ metricName: `${name}_count`, labels, value: below })
  return samples
}

function countOf(cells: readonly number[]): number {
  return cells.slice(0, -1).reduce((total, count) => total + count, 0)
}
