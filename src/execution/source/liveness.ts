import type { Clock, Timer } from '../../core/clock.ts'

/** No event for longer than this: degraded. */
const DEGRADED_MS = 10_000
/** No event for so long: unhealthy, and then the service ends. */
const SILENT_MS = 30_000

export type VitalSigns = Disposable & {
  /** An event came in. */
  beat(): void
  readonly ageMs: number
  readonly uptimeMs: number
  readonly status: 'healthy' | 'degraded'
  /** False from the moment the source has been silent for 30 s; it does not come back, since the service is about to end. */
  readonly isHealthy: boolean
}

/**
 * How the service is, by the age of the last event on the monotonic clock; before the first one the age counts from the start. The end
 * comes by a timer: no request brings it about or delays it, and the wall clock plays no part.
 */
export function watchVitalSigns({ clock, onSilent }: { clock: Clock; onSilent: () => void }): VitalSigns {
  const startedMs = clock.monotonicMs()
  let lastMs = startedMs
  let isSilent = false
  let timer: Timer

  function arm(delayMs: number): void {
    timer = clock.setTimer(delayMs, look)
    timer.unref?.()
  }

  function look(): void {
    const leftMs = SILENT_MS - ageMs()
    if (leftMs > 0) return arm(leftMs)
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
