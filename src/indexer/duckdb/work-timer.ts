import type { Clock, Timer } from '../../core/clock.ts'

/** A timer that does not run while it is paused. */
export type WorkTimer = Disposable & { pause(isPaused: boolean): void }

/** Calls `onEnd` once, after `ms` without the pauses. */
export function startWorkTimer(clock: Clock, ms: number, onEnd: () => void): WorkTimer {
  let restMs = ms
  let startedMs = clock.monotonicMs()
  let timer: Timer | undefined = clock.setTimer(restMs, onEnd)
  return {
    pause(isPaused) {
      if (isPaused === (timer === undefined)) return
      if (isPaused) {
        timer?.cancel()
        timer = undefined
        restMs -= clock.monotonicMs() - startedMs
      } else {
        startedMs = clock.monotonicMs()
        timer = clock.setTimer(Math.max(0, restMs), onEnd)
      }
    },
    [Symbol.dispose]: () => timer?.cancel(),
  }
}
