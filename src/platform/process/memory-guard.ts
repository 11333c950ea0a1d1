import { performance } from 'node:perf_hooks'
import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { MetricsRegistry } from '../telemetry/metrics-registry.ts'
import type { MemoryRelease } from './memory-release.ts'

export type MemoryPressure = 'none' | 'no-new-streams' | 'no-new-sockets'

export type MemoryGuard = Disposable & {
  /** What is refused at present. A timer measures, so a call costs nothing. */
  pressure(): MemoryPressure
  mayOpenStream(): boolean
  mayAccept(): boolean
}

export type MemoryUse = {
  /** What the system counts; freed memory stays in it until it is given back. */
  readonly residentBytes: number
  /** Heap and buffers of this thread, garbage that was not collected yet included. */
  readonly liveBytes: number
}

export type MemoryGuardDeps = {
  readonly clock: Clock
  readonly log: Logger
  readonly release: MemoryRelease
  readonly registry?: MetricsRegistry | undefined
  readonly measure?: (() => MemoryUse) | undefined
  /** Whether a pause would delay hardly anything. */
  readonly isIdle?: (() => boolean) | undefined
}

/** Calls go on for a while when streams are turned away: they hold memory for a moment only. */
const STREAMS_FROM = 0.8
const SOCKETS_FROM = 0.9
const PERIOD_MS = 500
/** A collection stops the process for a while: under pressure at most so often, and in all at most for this share of the time. */
const COLLECT_PERIOD_MS = 2000
const COLLECT_SHARE_MAX = 0.05
/** An idle process collects while it has so much more than it had at its smallest; the less that helps, the less often. */
const IDLE_COLLECT_MIN_MS = 5000
const IDLE_COLLECT_MAX_MS = 30_000
const IDLE_GAIN_MIN = 0.1
const IDLE_GROWTH = 1.1
const IDLE_GROWTH_BYTES = 4 * 2 ** 20

/**
 * Keeps a process within its memory by turning away what is new before what is open suffers. It decides on memory in use: live bytes, and what else
 * was resident after the last collection. Resident memory alone would keep a process closed long after the load that filled it.
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
  /** A collection is over, and what it left is to be measured once free memory has been given back. */
  let isRemeasureDue = false

  const collections = deps.registry?.counter({
    name: 'sluice_process_memory_collections_total',
    help: 'Garbage collections that the memory guard asked for.',
  })
  deps.registry?.gauge({
    name: 'sluice_process_live_bytes',
    help: 'Heap and buffers in use, as last measured by the memory guard.',
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

  function look(): void {
    const nowMs = clock.monotonicMs()
    use = measure()
    if (isRemeasureDue) {
      isRemeasureDue = false
      floorBytes = floorBytes === 0 ? use.liveBytes : Math.min(floorBytes, use.liveBytes)
      const hasHelped = use.liveBytes < (1 - IDLE_GAIN_MIN) * liveBeforeBytes
      idleCollectMs = hasHelped ? IDLE_COLLECT_MIN_MS : Math.min(2 * idleCollectMs, IDLE_COLLECT_MAX_MS)
      // Where free memory cannot be given back, being resident says nothing about use.
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

  look()
  const timer = clock.setRepeating(PERIOD_MS, look)
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
  // A mapped file counts as external whole, and as resident only where it was read.
  return { residentBytes: rss, liveBytes: Math.min(rss, heapUsed + external) }
}

const BUSY_SHARE = 0.5

/** Idle when the event loop has been so since it was last asked. */
function createIdleWatch(): () => boolean {
  let before = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    return utilization < BUSY_SHARE
  }
}
