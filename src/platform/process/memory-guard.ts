import { type EventLoopUtilization, performance } from 'node:perf_hooks'
import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../telemetry/logger.ts'
import { collectionsMetric, liveBytesMetric } from '../telemetry/memory-guard-metrics.ts'
import type { MetricsRegistry } from '../telemetry/metrics-registry.ts'
import { GarbageCollectionTrigger } from './garbage-collection.ts'
import { createMemoryCells, MemoryCells, type MemoryPressure } from './memory-cells.ts'
import type { MemoryRelease } from './memory-release.ts'

export type MemoryGuard = Disposable & {
  /** What is refused now. A timer measures, so a call is cheap. */
  pressure(): MemoryPressure
  mayOpenStream(): boolean
  mayAccept(): boolean
}

/** That of main, which decides for all threads. */
export type ProcessMemoryGuard = MemoryGuard & {
  /** The thread has died, and its heap with it. Called before the thread is started again. */
  reclaim(thread: number): void
}

export type MemoryUse = {
  /** As the system counts it, for the process; includes freed memory that was not returned yet. */
  readonly residentBytes: number
  /** Heap and buffers of this thread, with garbage that is not collected yet. Memory that threads share is not part of it. */
  readonly liveBytes: number
}

export type ThreadMemoryGuardDeps = {
  readonly clock: Clock
  /** Shared with the other threads. */
  readonly cells: MemoryCells
  readonly release: Pick<MemoryRelease, 'collect'>
  readonly registry?: MetricsRegistry | undefined
  readonly measure?: (() => Pick<MemoryUse, 'liveBytes'>) | undefined
  /** Whether the event loop is idle, so that a collection delays little. */
  readonly isIdle?: (() => boolean) | undefined
}

export type MemoryGuardDeps = Omit<ThreadMemoryGuardDeps, 'cells' | 'measure'> & {
  readonly log: Logger
  readonly release: MemoryRelease
  /** Shared with the other threads, where there are any. */
  readonly cells?: MemoryCells | undefined
  readonly measure?: (() => MemoryUse) | undefined
}

/** Streams are refused before connections: a single call holds memory only briefly. */
const STREAMS_FROM = 0.8
const SOCKETS_FROM = 0.9
const PERIOD_MS = 500

/**
 * Keeps a process within its memory limit by refusing new streams and sockets. It decides on memory in use: live bytes of all threads, and the
 * other resident bytes after the last collection. With resident memory alone the process would refuse work long after the load is gone.
 */
export function createMemoryGuard(
  { residentBytesMax: bytesMax }: { residentBytesMax: number },
  deps: MemoryGuardDeps,
): ProcessMemoryGuard {
  const { clock, log, release, measure = memoryUse } = deps
  const cells = deps.cells ?? new MemoryCells(createMemoryCells({ threads: 1 }), 0)
  const garbageCollection = createCollectionTrigger({ ...deps, cells })
  let pressure: MemoryPressure = 'none'
  let liveBytes = 0
  /** Resident and not live, after the last collection: code, stacks, memory of libraries, memory that threads share. */
  let otherBytes = 0
  let collections = cells.collections
  /** Another thread has collected; what that left is measured once free memory was returned. */
  let isRemeasureDue = false

  if (deps.registry !== undefined) liveBytesMetric(deps.registry, () => liveBytes)

  function check(): void {
    const use = measure()
    cells.report(use.liveBytes)
    // A mapped file counts as live with its full size, and as resident only where it was read.
    liveBytes = Math.min(use.residentBytes, cells.liveBytes)
    const hasCollected = garbageCollection.measured(use.liveBytes)
    if (hasCollected || isRemeasureDue) {
      // Where free memory cannot be returned, resident memory is no measure of use.
      otherBytes = release.trim === undefined ? 0 : Math.max(0, use.residentBytes - liveBytes)
    }
    const collectionsNow = cells.collections
    isRemeasureDue = collectionsNow !== collections
    const usedBytes = liveBytes + otherBytes
    const isFull = Math.max(use.residentBytes, usedBytes) >= STREAMS_FROM * bytesMax
    const isCollected = garbageCollection.collectIfDue(use.liveBytes, isFull)
    if (isCollected || isRemeasureDue) release.trim?.()
    collections = collectionsNow + (isCollected ? 1 : 0)
    setPressure(usedBytes, use)
    cells.publish(pressure, isFull)
  }

  function setPressure(usedBytes: number, { residentBytes }: MemoryUse): void {
    const share = usedBytes / bytesMax
    const now = share >= SOCKETS_FROM ? 'no-new-sockets' : share >= STREAMS_FROM ? 'no-new-streams' : 'none'
    if (now === pressure) return
    pressure = now
    log.warn({ pressure, usedBytes, residentBytes, liveBytes, residentBytesMax: bytesMax }, 'memory pressure changed')
  }

  return { ...guardOn(cells, clock, check), reclaim: (thread) => cells.reclaim(thread) }
}

/** The guard of a thread other than main: reports what the thread uses, collects its heap, and refuses what main has decided. */
export function createThreadMemoryGuard(deps: ThreadMemoryGuardDeps): MemoryGuard {
  const { clock, cells, measure = memoryUse } = deps
  const garbageCollection = createCollectionTrigger(deps)
  return guardOn(cells, clock, () => {
    const { liveBytes } = measure()
    cells.report(liveBytes)
    garbageCollection.measured(liveBytes)
    // Main sees what the collection left at once.
    if (garbageCollection.collectIfDue(liveBytes, cells.isFull)) cells.report(measure().liveBytes)
  })
}

function createCollectionTrigger({
  clock,
  cells,
  release,
  registry,
  isIdle = createIdleWatch(),
}: ThreadMemoryGuardDeps): GarbageCollectionTrigger {
  const collections = registry && collectionsMetric(registry)
  const collect = () => {
    release.collect()
    collections?.inc()
  }
  return new GarbageCollectionTrigger({ clock, cells, collect, isIdle })
}

/** Runs the check now and in every period. */
function guardOn(cells: MemoryCells, clock: Clock, check: () => void): MemoryGuard {
  check()
  const timer = clock.setRepeating(PERIOD_MS, check)
  timer.unref?.()
  return {
    pressure: () => cells.pressure,
    mayOpenStream: () => cells.pressure === 'none',
    mayAccept: () => cells.pressure !== 'no-new-sockets',
    [Symbol.dispose]: () => timer.cancel(),
  }
}

/** The memory of a thread. `external` has no SharedArrayBuffer, whichever thread made it; they are counted once, as other resident bytes. */
function memoryUse(): MemoryUse {
  const { rss, heapUsed, external } = process.memoryUsage()
  return { residentBytes: rss, liveBytes: heapUsed + external }
}

/** From here on a thread serves clients, whom a collection would delay; it allocates, so that V8 collects by itself. */
const BUSY_SHARE = 0.05

type LoopUse = Pick<EventLoopUtilization, 'active' | 'idle'>

/** Whether the event loop was idle since the last call. */
export function createIdleWatch(read: () => LoopUse = () => performance.eventLoopUtilization()): () => boolean {
  let before = read()
  return () => {
    const now = read()
    const active = now.active - before.active
    const idle = now.idle - before.idle
    before = now
    return active < BUSY_SHARE * (active + idle)
  }
}
