import { FamilyReader } from './family-reader.ts'
import { clearGauge } from './metric-family.ts'
import { FamilyMemory, type SharedFamily } from './metric-memory.ts'
import type { MetricsRegistry } from './metrics-registry.ts'
import { createMetricsView, type FamilyReaders, type MetricsView } from './metrics-view.ts'

/** The metrics of one thread, in the main thread. They stay when the thread ends, and its next instance goes on in the same memory. */
export type ThreadMetrics = {
  readonly readers: FamilyReaders
  /** `shared.previous` of the next instance. */
  readonly families: ReadonlyMap<string, SharedFamily>
  /** What the thread's registry passed to `onFamily`. */
  add(family: SharedFamily): void
  /** The thread has ended: its gauges show no longer what is. Counts stay. */
  ended(): void
}

export function createThreadMetrics(): ThreadMetrics {
  const readers = new Map<string, FamilyReader>()
  const families = new Map<string, SharedFamily>()
  return {
    readers,
    families,
    add(family) {
      families.set(family.name, family)
      readers.set(family.name, new FamilyReader(family))
    },
    ended() {
      for (const family of families.values()) if (family.type === 'gauge') clearGauge(new FamilyMemory(family))
    },
  }
}

/**
 * The metrics of all threads of a process as one: counters and histograms are summed, gauges are merged by their rule. Reads only memory, so that a
 * scrape waits for no thread.
 */
export function createMergedMetrics(
  own: Pick<MetricsRegistry, 'readers'>,
  threads: () => Iterable<Pick<ThreadMetrics, 'readers'>>,
): MetricsView {
  return createMetricsView(() => [own.readers, ...Array.from(threads(), ({ readers }) => readers)])
}
