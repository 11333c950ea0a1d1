// Imported although it is a global: access to the global goes through a getter each time.
import { performance } from 'node:perf_hooks'
import type { Clock, Timer } from '../../core/clock.ts'

/** The longest delay of Node's timers, 24.8 days; with a longer one they fire at once. */
const DELAY_MS_MAX = 2 ** 31 - 1

/** `performance.now` counts from the start of its thread. Added to it, one scale for all threads of the process, which share times in memory. */
const THREAD_START_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** The clock of the system. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => THREAD_START_MS + performance.now(),
  setTimer(delayMs, run) {
    if (delayMs > DELAY_MS_MAX) return setLongTimer(delayMs, run)
    const handle = setTimeout(run, Math.max(0, delayMs))
    return timer(handle, () => clearTimeout(handle))
  },
  setRepeating(periodMs, run) {
    const handle = setInterval(run, within(periodMs))
    return timer(handle, () => clearInterval(handle))
  },
}

/** Resolves after the delay on the given clock. */
export function delay(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimer(delayMs, resolve))
}

/** Waits until the promise is settled, at most so long; rejects where it does within that time. A later rejection is ignored. */
export async function settledWithin(
  promise: Promise<unknown> | undefined,
  timeoutMs: number,
  clock: Clock,
): Promise<void> {
  if (promise === undefined) return
  const { promise: late, resolve } = Promise.withResolvers<void>()
  using _timer = clock.setTimer(timeoutMs, resolve)
  await Promise.race([promise, late])
}

/** One timer of Node after another. Clients choose such delays: the deadline of a gRPC call may be years. */
function setLongTimer(delayMs: number, run: () => void): Timer {
  let handle: NodeJS.Timeout
  let isUnref = false

  function arm(leftMs: number): void {
    const stepMs = Math.min(leftMs, DELAY_MS_MAX)
    handle = setTimeout(() => (leftMs > stepMs ? arm(leftMs - stepMs) : run()), stepMs)
    if (isUnref) handle.unref()
  }

  arm(delayMs)
  const cancel = () => clearTimeout(handle)
  return {
    cancel,
    unref() {
      isUnref = true
      handle.unref()
    },
    [Symbol.dispose]: cancel,
  }
}

function within(ms: number): number {
  return Math.min(Math.max(0, ms), DELAY_MS_MAX)
}

function timer(handle: NodeJS.Timeout, cancel: () => void): Timer {
  return { cancel, unref: () => void handle.unref(), [Symbol.dispose]: cancel }
}
