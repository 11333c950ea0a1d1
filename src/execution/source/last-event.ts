import type { Clock } from '../../core/clock.ts'

/** The time of the last event on disk, in unix milliseconds. */
export type LastEventStore = {
  /** Undefined when no event was ever stored. Throws when the stored time cannot be read. */
  read(): number | undefined
  /** Replaces the stored time. Only one call at a time. */
  replace(unixMs: number): Promise<void>
}

/** Outlives the service: its age continues over restarts of the service and, by the store, of the process. */
export type LastEvent = AsyncDisposable & {
  /** Time since the last event; before the first one ever, since this was opened. */
  readonly ageMs: number
  /** An event arrived. */
  arrived(): void
  /** An event was found that was recorded before it could be read. It counts if it is newer than the last one known. */
  found(recordedMs: number): void
}

export type LastEventDeps = {
  readonly clock: Clock
  readonly store: LastEventStore
  /** The age where the stored time cannot be used. */
  readonly unknownAgeMs: number
  readonly onFault: (error: unknown) => void
}

/** At most one write in this time, so a killed process loses no more than this. */
const WRITE_MS = 1000

/**
 * The age of the last event. It grows with the monotonic clock; the wall clock is used once, for the time on disk. A time on disk that is not readable, or
 * is in the future because the clock was set back, proves that there was an event but not when: the age is then `unknownAgeMs`.
 */
export function openLastEvent({ clock, store, unknownAgeMs, onFault }: LastEventDeps): LastEvent {
  /** On the monotonic clock, before its zero for an event of an earlier process. */
  let lastMs = clock.monotonicMs() - (storedAgeMs() ?? 0)
  let hasEvents = false
  let writeAtMs = Number.NEGATIVE_INFINITY
  let writing: Promise<void> | undefined
  let hasFailed = false

  function storedAgeMs(): number | undefined {
    try {
      const stored = store.read()
      if (stored === undefined) return undefined
      const ageMs = clock.nowMs() - stored
      return ageMs < 0 ? unknownAgeMs : ageMs
    } catch (error) {
      onFault(error)
      return unknownAgeMs
    }
  }

  function advanceTo(eventMs: number): void {
    lastMs = eventMs
    hasEvents = true
    const nowMs = clock.monotonicMs()
    if (nowMs < writeAtMs || writing !== undefined) return
    writeAtMs = nowMs + WRITE_MS
    writing = write()
  }

  /** A disk that is full or gone does not stop the service; the first failure in a row is reported. */
  async function write(): Promise<void> {
    try {
      await store.replace(Math.round(clock.nowMs() - (clock.monotonicMs() - lastMs)))
      hasFailed = false
    } catch (error) {
      if (!hasFailed) onFault(error)
      hasFailed = true
    } finally {
      writing = undefined
    }
  }

  return {
    get ageMs() {
      return clock.monotonicMs() - lastMs
    },
    arrived: () => advanceTo(clock.monotonicMs()),
    found(recordedMs) {
      const ageMs = clock.nowMs() - recordedMs
      // An event from the future was recorded before the clock was set back.
      if (ageMs >= 0 && ageMs < clock.monotonicMs() - lastMs) advanceTo(clock.monotonicMs() - ageMs)
    },
    async [Symbol.asyncDispose]() {
      await writing
      // Also if nothing came since the last write: the wall clock may have been set.
      if (hasEvents) await write()
    },
  }
}
