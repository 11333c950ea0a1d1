import assert from 'node:assert/strict'

/** A pending call. Cancelling twice, or after it ran, does nothing. */
export type Timer = Disposable & {
  cancel(): void
  /** Lets the process exit while this timer is pending. Only timers of the system clock have it. */
  unref?(): void
}

/** The source of time. Intervals are measured on the monotonic clock, dates on the wall clock. */
export type Clock = {
  /** Wall clock in unix milliseconds. May jump in either direction. */
  nowMs(): number
  /** Milliseconds since a fixed moment. Never decreases. */
  monotonicMs(): number
  /** Runs once, after at least `delayMs`. */
  setTimer(delayMs: number, run: () => void): Timer
  /** Runs every `periodMs` until cancelled. */
  setRepeating(periodMs: number, run: () => void): Timer
}

/** A clock that only moves when it is advanced, for tests and the simulator. */
export type ManualClock = Clock & {
  /** Advances both clocks and runs the timers that fall due, in order of time, then of creation. */
  advance(ms: number): void
  /** The same, letting promises settle before the first timer and after each. */
  advanceAsync(ms: number): Promise<void>
  /** Sets only the wall clock, as an administrator or NTP would. */
  setWallMs(unixMs: number): void
  /** Timers that are pending. */
  pendingTimers(): number
}

type Entry = { dueMs: number; order: number; periodMs: number | undefined; run: () => void }

/** More timers than this in one `advance` means a timer that re-arms itself without delay. */
const RUNS_PER_ADVANCE_MAX = 1_000_000
/** Promise chains of this length settle between two timers of `advanceAsync`. */
const SETTLE_TURNS = 20
const DEFAULT_START_MS = Date.UTC(2027, 0, 1)

export function createManualClock(startMs: number = DEFAULT_START_MS): ManualClock {
  let monotonicMs = 0
  let wallOffsetMs = startMs
  let created = 0
  const entries = new Set<Entry>()

  function add(delayMs: number, periodMs: number | undefined, run: () => void): Timer {
    assert(!Number.isNaN(delayMs), 'a delay must be a number')
    const entry: Entry = { dueMs: monotonicMs + Math.max(0, delayMs), order: created++, periodMs, run }
    entries.add(entry)
    const cancel = () => void entries.delete(entry)
    return { cancel, [Symbol.dispose]: cancel }
  }

  function nextDue(untilMs: number): Entry | undefined {
    let next: Entry | undefined
    for (const entry of entries) {
      if (entry.dueMs > untilMs) continue
      if (!next || entry.dueMs < next.dueMs || (entry.dueMs === next.dueMs && entry.order < next.order)) next = entry
    }
    return next
  }

  function* dueUntil(untilMs: number): Generator<Entry> {
    for (let runs = 0; runs < RUNS_PER_ADVANCE_MAX; runs++) {
      const entry = nextDue(untilMs)
      if (!entry) return
      monotonicMs = Math.max(monotonicMs, entry.dueMs)
      if (entry.periodMs === undefined) entries.delete(entry)
      else {
        entry.dueMs += entry.periodMs
        entry.order = created++
      }
      yield entry
    }
    assert.fail('a timer re-arms itself without delay')
  }

  return {
    nowMs: () => wallOffsetMs + monotonicMs,
    monotonicMs: () => monotonicMs,
    setTimer: (delayMs, run) => add(delayMs, undefined, run),
    setRepeating(periodMs, run) {
      assert(periodMs > 0, 'a period must be positive')
      return add(periodMs, periodMs, run)
    },
    advance(ms) {
      assert(ms >= 0, 'time does not go back')
      const untilMs = monotonicMs + ms
      for (const entry of dueUntil(untilMs)) entry.run()
      monotonicMs = untilMs
    },
    async advanceAsync(ms) {
      assert(ms >= 0, 'time does not go back')
      const untilMs = monotonicMs + ms
      await settle()
      for (const entry of dueUntil(untilMs)) {
        entry.run()
        await settle()
      }
      monotonicMs = untilMs
    },
    setWallMs(unixMs) {
      wallOffsetMs = unixMs - monotonicMs
    },
    pendingTimers: () => entries.size,
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < SETTLE_TURNS; turn++) await Promise.resolve()
}
