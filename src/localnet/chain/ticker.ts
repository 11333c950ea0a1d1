import type { Clock, Timer } from '../../core/clock.ts'

/** Further behind than this the beats were not late but impossible (a suspended machine, a stopped process): they are not made up. */
const BEATS_LATE_MAX = 10

/** Calls `beat` every `periodMs`, counted from the start: a late call does not delay the ones after it. */
export function startTicker(periodMs: number, deps: { readonly clock: Clock; beat(): void }): Disposable {
  const { clock } = deps
  let dueMs = clock.monotonicMs() + periodMs
  let timer: Timer | undefined
  let stopped = false

  function arm(): void {
    timer = clock.setTimer(dueMs - clock.monotonicMs(), run)
  }

  function run(): void {
    if (stopped) return
    const lateMs = clock.monotonicMs() - dueMs
    // A timer of the system may fire a fraction of a millisecond early.
    dueMs = lateMs > BEATS_LATE_MAX * periodMs ? clock.monotonicMs() + periodMs : dueMs + periodMs
    deps.beat()
    if (!stopped) arm()
  }

  arm()
  return {
    [Symbol.dispose]() {
      stopped = true
      timer?.cancel()
    },
  }
}
