import type { Clock } from '../core/clock.ts'
import { clampSlotMs, SLOT_MS_DEFAULT, SlotPace } from '../solana/slot-pace.ts'

/** The length of a slot of the chain, learned from its nodes. */
export type SlotLength = {
  /** In milliseconds; 400 until it is learned. */
  ms(): number
  /** How many slots this time has, rounded up. */
  inSlots(timeMs: number): number
  readonly isLearned: boolean
  onChange(listener: () => void): Disposable
}

export type SlotLengthLearner = SlotLength & {
  /** The newest slot of a source. A source is a node, or anything else that shows slots as they pass. */
  observe(source: object, slot: number): void
  /** The length that a source reports itself; it counts until enough of its slots were observed. */
  report(source: object, ms: number): void
  forget(source: object): void
}

export type SlotLengthDeps = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** The length until it is learned. */
  readonly fallback?: Pick<SlotLength, 'ms'> | undefined
}

type Source = { readonly pace: SlotPace; readonly atMs: number; reportedMs: number | undefined }

/** The nodes of a pool. */
const SOURCES_MAX = 256
/** Smaller differences are noise of the measurement. */
const CHANGE_SHARE = 0.01
/** A source without slots for this time does not count while others have some. */
const STALE_MS = 180_000

/**
 * The median over the sources, so that one node with a wrong clock or wrong slots changes nothing where others are right. Of two that differ, the one
 * nearer to the known length counts.
 */
export function createSlotLength({ clock, fallback }: SlotLengthDeps): SlotLengthLearner {
  const sources = new Map<object, Source>()
  const listeners = new Set<() => void>()
  let learnedMs: number | undefined

  const ms = () => learnedMs ?? fallback?.ms() ?? SLOT_MS_DEFAULT

  function sourceOf(key: object): Source | undefined {
    const known = sources.get(key)
    if (known !== undefined || sources.size >= SOURCES_MAX) return known
    const source: Source = { pace: new SlotPace(), atMs: clock.monotonicMs(), reportedMs: undefined }
    sources.set(key, source)
    return source
  }

  function update(): void {
    const oldestMs = clock.monotonicMs() - STALE_MS
    const lengths: number[] = []
    for (const source of sources.values()) {
      const { pace, atMs } = source
      if (pace.ms !== undefined) source.reportedMs = undefined
      const length = pace.ms ?? source.reportedMs
      if (length !== undefined && Math.max(pace.lastAtMs, atMs) >= oldestMs) lengths.push(length)
    }
    const next = medianNear(lengths, ms())
    if (next === undefined || (learnedMs !== undefined && Math.abs(next - learnedMs) < learnedMs * CHANGE_SHARE)) return
    learnedMs = next
    for (const listener of listeners) listener()
  }

  return {
    ms,
    inSlots: (timeMs) => Math.ceil(timeMs / ms()),
    get isLearned() {
      return learnedMs !== undefined
    },
    onChange(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    observe(key, slot) {
      if (sourceOf(key)?.pace.observe(slot, clock.monotonicMs()) === true) update()
    },
    report(key, reportedMs) {
      const source = sourceOf(key)
      if (source === undefined || !Number.isFinite(reportedMs)) return
      source.reportedMs = clampSlotMs(reportedMs)
      update()
    },
    forget: (key) => void sources.delete(key),
  }
}

/** The median; of an even number of values the one of the two in the middle that is nearer to `known`. */
function medianNear(values: readonly number[], known: number): number | undefined {
  const sorted = values.toSorted((a, b) => a - b)
  const upper = sorted[sorted.length >> 1]
  const lower = sorted[(sorted.length - 1) >> 1]
  if (upper === undefined || lower === undefined) return undefined
  return Math.abs(lower - known) < Math.abs(upper - known) ? lower : upper
}
