import { setFlagsFromString } from 'node:v8'
import type { Clock } from '../../core/clock.ts'
import type { MemoryCells } from './memory-cells.ts'

/** A collection stops the thread: under pressure at most once per period, and at most for this share of the time. */
const COLLECT_PERIOD_MS = 2000
const COLLECT_SHARE_MAX = 0.05
/** An idle thread collects while it uses this much more than its minimum; less often when a collection frees little. */
const IDLE_COLLECT_MIN_MS = 5000
const IDLE_COLLECT_MAX_MS = 300_000
const IDLE_GAIN_MIN = 0.1
const IDLE_GROWTH = 1.1
const IDLE_GROWTH_BYTES = 4 * 2 ** 20

/**
 * Lets the heaps of all threads double between full collections. By default V8 collects a heap that grows slowly each time it has grown by a tenth or
 * a fifth, as the share of time for it is small; but each of these collections holds the thread for 10 to 30 ms and takes the processors of others.
 */
export function collectOnlyDoubledHeaps(): void {
  setFlagsFromString('--heap-growing-percent=100')
}

export type GarbageCollectionDeps = {
  readonly clock: Clock
  readonly cells: MemoryCells
  readonly collect: () => void
  /** Whether the event loop is idle, so that a collection delays little. */
  readonly isIdle: () => boolean
}

/** Decides when a thread collects its heap. */
export class GarbageCollectionTrigger {
  readonly #deps: GarbageCollectionDeps
  /** Live after the collection that left the least. */
  #floorBytes = 0
  #beforeBytes = 0
  #idleCollectMs = IDLE_COLLECT_MIN_MS
  #collectedAtMs: number
  #nextCollectMs: number
  /** A collection is done; its effect is measured once free memory was returned. */
  #isRemeasureDue = false

  constructor(deps: GarbageCollectionDeps) {
    this.#deps = deps
    this.#collectedAtMs = deps.clock.monotonicMs()
    this.#nextCollectMs = this.#collectedAtMs
  }

  /** Takes a measurement of the thread's live bytes; returns whether it is the first after a collection. */
  measured(liveBytes: number): boolean {
    if (!this.#isRemeasureDue) return false
    this.#isRemeasureDue = false
    this.#floorBytes = this.#floorBytes === 0 ? liveBytes : Math.min(this.#floorBytes, liveBytes)
    const hasHelped = liveBytes < (1 - IDLE_GAIN_MIN) * this.#beforeBytes
    this.#idleCollectMs = hasHelped ? IDLE_COLLECT_MIN_MS : Math.min(2 * this.#idleCollectMs, IDLE_COLLECT_MAX_MS)
    return true
  }

  /** Collects if that is due: where memory is full, or the thread has grown and is idle. Returns whether it did. */
  collectIfDue(liveBytes: number, isFull: boolean): boolean {
    const { clock, cells, collect } = this.#deps
    const nowMs = clock.monotonicMs()
    if (!(isFull ? nowMs >= this.#nextCollectMs : this.#isIdleCollectDue(liveBytes, nowMs))) return false
    if (!cells.collect(collect)) return false
    this.#beforeBytes = liveBytes
    this.#collectedAtMs = clock.monotonicMs()
    const shareMs = (this.#collectedAtMs - nowMs) / COLLECT_SHARE_MAX
    this.#nextCollectMs = this.#collectedAtMs + Math.max(COLLECT_PERIOD_MS, shareMs)
    this.#isRemeasureDue = true
    return true
  }

  #isIdleCollectDue(liveBytes: number, nowMs: number): boolean {
    const hasGrown = liveBytes > IDLE_GROWTH * this.#floorBytes + IDLE_GROWTH_BYTES
    return hasGrown && nowMs - this.#collectedAtMs >= this.#idleCollectMs && this.#deps.isIdle()
  }
}
