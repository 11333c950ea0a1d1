import type { ChangingLabel } from './changing-label.ts'
import { FamilyReader } from './family-reader.ts'
import { mergeReadings } from './merge-readings.ts'
import { createFamily, FamilyMemory, type FamilyShape, isSameShape, type SharedFamily } from './metric-memory.ts'

/** A metric in the thread that writes it. */
export type OwnFamily = {
  readonly family: SharedFamily
  readonly memory: FamilyMemory
  /** Whether it continues in the memory of the thread's former instance. */
  readonly isContinued: boolean
}

/**
 * Takes the memory of the thread's former instance where the metric still has the same series, else new memory. Counters and histograms go on counting, so
 * that they never go back; gauges begin again.
 */
export function openFamily(
  shape: FamilyShape,
  label: ChangingLabel | undefined,
  previous: SharedFamily | undefined,
): OwnFamily {
  const isContinued = previous !== undefined && isSameShape(shape, previous)
  const family = isContinued ? { ...shape, memory: previous.memory } : createFamily(shape)
  const memory = new FamilyMemory(family)
  if (shape.type === 'gauge') clearGauge(memory)
  if (label !== undefined) followLabel(memory, label)
  if (previous !== undefined && !isContinued) copyCounts(previous, family)
  return { family, memory, isContinued }
}

/** Excludes a gauge from scrapes: its thread has ended, or has just begun. Not set to zero only: a zero would be the minimum of all threads. */
export function clearGauge(memory: FamilyMemory): void {
  for (let index = 0; index < memory.size; index++) memory.clear(index)
}

/** The series at an index begin at zero with each value that gets the index. */
function followLabel(memory: FamilyMemory, label: ChangingLabel): void {
  const { names, max } = label
  const start = (index: number) => {
    const generation = names.generationOf(index)
    if (memory.generations[index] !== generation) memory.startGeneration(index, generation)
  }
  names.change(() => {
    for (let index = 0; index < max; index++) start(index)
  })
  label.onAssigned(start)
}

/** Copies the counts of the former instance for label values that still exist: the configuration has changed between the two. */
function copyCounts(previous: SharedFamily, family: SharedFamily): void {
  const isSameCount = previous.type === family.type && String(previous.buckets) === String(family.buckets)
  if (family.type === 'gauge' || !isSameCount) return
  const to = new FamilyMemory(family)
  const target = new FamilyReader(family)
  for (const { labels, cells } of mergeReadings(previous, [new FamilyReader(previous).read()])) {
    const index = target.indexOf(labels)
    if (index === -1) continue
    for (const [at, value] of cells.entries()) to.cells[index * to.width + at] = value
    to.used[index] = 1
  }
}
