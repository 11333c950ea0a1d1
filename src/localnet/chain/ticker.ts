import type { Clock, Timer } from '../../core/clock.ts'

/** Further behind than this the process was suspended or stopped: the missed ticks are skipped. */
const TICKS_LATE_MAX = 10

/** Calls `tick` every `periodMs()`, scheduled from the start: a late call does not delay the ones after it. A new period counts from the next tick. */
export function startTicker(periodMs: () => number, deps: { readonly clock: Clock; tick(): void }): Disposable {
  const { clock } = deps
  let dueMs = clock.monotonicMs() + periodMs()
  let timer: Timer | undefined
  let stopped = false

  function arm(): void {
    timer = clock.setTimer(dueMs - clock.monotonicMs(), run)
  }

  function run(): void {
    if (stopped) return
    const lateMs = clock.monotonicMs() - dueMs
    const nextMs = periodMs()
    // A system timer may fire a fraction of a millisecond early.
    dueMs = lateMs > TICKS_LATE_MAX * nextMs ? clock.monotonicMs() + nextMs : dueMs + nextMs
    deps.tick()
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
