import { performance } from 'node:perf_hooks'
import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { MetricsRegistry } from '../telemetry/metrics-registry.ts'
import type { MemoryRelease } from './memory-release.ts'

export type MemoryPressure = 'none' | 'no-new-streams' | 'no-new-sockets'

export type MemoryGuard = Disposable & {
  /** What is refused now. A timer measures, so a call is cheap. */
  pressure(): MemoryPressure
  mayOpenStream(): boolean
  mayAccept(): boolean
}

export type MemoryUse = {
  /** As the system counts it; includes freed memory that was not returned yet. */
  readonly residentBytes: number
  /** Heap and buffers of this thread, with garbage that is not collected yet. */
  readonly liveBytes: number
}

export type MemoryGuardDeps = {
  readonly clock: Clock
  readonly log: Logger
  readonly release: MemoryRelease
  readonly registry?: MetricsRegistry | undefined
  readonly measure?: (() => MemoryUse) | undefined
  /** Whether the event loop is idle, so that a collection delays little. */
  readonly isIdle?: (() => boolean) | undefined
}

/** Streams are refused before connections: a single call holds memory only briefly. */
const STREAMS_FROM = 0.8
const SOCKETS_FROM = 0.9
const PERIOD_MS = 500
/** A collection stops the thread: under pressure at most once per period, and at most for this share of the time. */
const COLLECT_PERIOD_MS = 2000
const COLLECT_SHARE_MAX = 0.05
/** An idle process collects while it uses this much more than its minimum; less often when a collection frees little. */
const IDLE_COLLECT_MIN_MS = 5000
const IDLE_COLLECT_MAX_MS = 30_000
const IDLE_GAIN_MIN = 0.1
const IDLE_GROWTH = 1.1
const IDLE_GROWTH_BYTES = 4 * 2 ** 20

/**
 * Keeps a process within its memory limit by refusing new streams and sockets. It decides on memory in use: live bytes, and the other resident
 * bytes after the last collection. With resident memory alone the process would refuse work long after the load is gone.
 */
export function createMemoryGuard(
  { residentBytesMax: bytesMax }: { residentBytesMax: number },
  deps: MemoryGuardDeps,
): MemoryGuard {
  const { clock, log, release, measure = memoryUse, isIdle = createIdleWatch() } = deps
  let pressure: MemoryPressure = 'none'
  let use = measure()
  /** Resident and not live, after the last collection: code, threads, memory of libraries. */
  let otherBytes = 0
  /** Live after the collection that left the least. */
  let floorBytes = 0
  let liveBeforeBytes = 0
  let idleCollectMs = IDLE_COLLECT_MIN_MS
  let collectedAtMs = clock.monotonicMs()
  let nextCollectMs = collectedAtMs
  /** A collection is done; its effect is measured once free memory was returned. */
  let isRemeasureDue = false

  const collections = deps.registry?.counter(
    'sluice_process_memory_collections_total',
    'Garbage collections that the memory guard asked for.',
  )
  deps.registry?.gauge('sluice_process_live_bytes', 'Heap and buffers in use, as last measured by the memory guard.', {
    read: () => use.liveBytes,
  })

  function collect(nowMs: number): void {
    liveBeforeBytes = use.liveBytes
    release.collect()
    release.trim?.()
    collections?.inc()
    collectedAtMs = clock.monotonicMs()
    nextCollectMs = collectedAtMs + Math.max(COLLECT_PERIOD_MS, (collectedAtMs - nowMs) / COLLECT_SHARE_MAX)
    isRemeasureDue = true
  }

  function check(): void {
    const nowMs = clock.monotonicMs()
    use = measure()
    if (isRemeasureDue) {
      isRemeasureDue = false
      floorBytes = floorBytes === 0 ? use.liveBytes : Math.min(floorBytes, use.liveBytes)
      const hasHelped = use.liveBytes < (1 - IDLE_GAIN_MIN) * liveBeforeBytes
      idleCollectMs = hasHelped ? IDLE_COLLECT_MIN_MS : Math.min(2 * idleCollectMs, IDLE_COLLECT_MAX_MS)
      // Where free memory cannot be returned, resident memory is no measure of use.
      otherBytes = release.trim === undefined ? 0 : Math.max(0, use.residentBytes - use.liveBytes)
    }
    const usedBytes = use.liveBytes + otherBytes
    const isFull = Math.max(use.residentBytes, usedBytes) >= STREAMS_FROM * bytesMax
    const hasGrown = use.liveBytes > IDLE_GROWTH * floorBytes + IDLE_GROWTH_BYTES
    if (isFull) {
      if (nowMs >= nextCollectMs) collect(nowMs)
    } else if (hasGrown && nowMs - collectedAtMs >= idleCollectMs && isIdle()) collect(nowMs)
    setPressure(usedBytes)
  }

  function setPressure(usedBytes: number): void {
    const share = usedBytes / bytesMax
    const now = share >= SOCKETS_FROM ? 'no-new-sockets' : share >= STREAMS_FROM ? 'no-new-streams' : 'none'
    if (now === pressure) return
    pressure = now
    log.warn({ pressure, usedBytes, ...use, residentBytesMax: bytesMax }, 'memory pressure changed')
  }

  check()
  const timer = clock.setRepeating(PERIOD_MS, check)
  timer.unref?.()
  return {
    pressure: () => pressure,
    mayOpenStream: () => pressure === 'none',
    mayAccept: () => pressure !== 'no-new-sockets',
    [Symbol.dispose]: () => timer.cancel(),
  }
}

function memoryUse(): MemoryUse {
  const { rss, heapUsed, external } = process.memoryUsage()
  // A mapped file counts as external with its full size, and as resident only where it was read.
  return { residentBytes: rss, liveBytes: Math.min(rss, heapUsed + external) }
}

const BUSY_SHARE = 0.5

/** Whether the event loop was mostly idle since the last call. */
function createIdleWatch(): () => boolean {
  let before = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    return utilization < BUSY_SHARE
  }
}
