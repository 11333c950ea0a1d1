import type { Clock, Timer } from '../../core/clock.ts'

/** The status is degraded after this long without an event. */
const DEGRADED_MS = 10_000
/** After this long without an event the service is unhealthy and ends. */
const SILENT_MS = 30_000

export type Liveness = Disposable & {
  /** An event was received. */
  beat(): void
  readonly ageMs: number
  readonly uptimeMs: number
  readonly status: 'healthy' | 'degraded'
  /** False once the source was silent for 30 s. It stays false, because the service is about to end. */
  readonly isHealthy: boolean
}

/**
 * Liveness of the source by the age of the last event on the monotonic clock; before the first event the age counts from the start.
 * `onSilent` is called by a timer, so that neither requests nor the wall clock influence it.
 */
export function watchLiveness({ clock, onSilent }: { clock: Clock; onSilent: () => void }): Liveness {
  const startedMs = clock.monotonicMs()
  let lastMs = startedMs
  let isSilent = false
  let timer: Timer

  function arm(delayMs: number): void {
    timer = clock.setTimer(delayMs, check)
    timer.unref?.()
  }

  function check(): void {
    const remainingMs = SILENT_MS - ageMs()
    if (remainingMs > 0) return arm(remainingMs)
    isSilent = true
    onSilent()
  }

  function ageMs(): number {
    return clock.monotonicMs() - lastMs
  }

  arm(SILENT_MS)
  return {
    beat() {
      lastMs = clock.monotonicMs()
    },
    get ageMs() {
      return ageMs()
    },
    get uptimeMs() {
      return clock.monotonicMs() - startedMs
    },
    get status() {
      return ageMs() <= DEGRADED_MS && !isSilent ? 'healthy' : 'degraded'
    },
    get isHealthy() {
      return !isSilent && ageMs() < SILENT_MS
    },
    [Symbol.dispose]: () => timer.cancel(),
  }
}
