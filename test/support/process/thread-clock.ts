import type { Clock, Timer } from '../../../src/core/clock.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'

/** The system clock with one scale for all threads. */
export const threadClock: Clock = { ...systemClock, monotonicMs: () => Number(process.hrtime.bigint()) / 1e6 }

/** A clock that all threads read from one memory and a test sets. It has no timers. */
export function createSharedClock(memory = new SharedArrayBuffer(16)) {
  const [monotonic, wall] = [0, 1]
  const fields = new Float64Array(memory)
  const none: Timer = { cancel() {}, [Symbol.dispose]() {} }
  const clock: Clock = {
    nowMs: () => fields[wall] as number,
    monotonicMs: () => fields[monotonic] as number,
    setTimer: () => none,
    setRepeating: () => none,
  }
  return {
    memory,
    clock,
    /** Sets both clocks to this time. */
    set(unixMs: number): void {
      fields[monotonic] = unixMs - Date.UTC(2026, 0)
      fields[wall] = unixMs
    },
  }
}
