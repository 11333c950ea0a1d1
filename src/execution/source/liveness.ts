import type { Clock, Timer } from '../../core/clock.ts'
import type { LastEvent } from './last-event.ts'

/** The status is degraded after this long without an event. */
export const DEGRADED_MS = 10_000
/** After this long without an event the service is unhealthy and ends. */
export const SILENT_MS = 30_000

export type Liveness = Disposable & {
  /** Events were read. `recordedMs`: when the newest one was recorded, if it was in the ring before it was opened. */
  beat(recordedMs?: number): void
  readonly ageMs: number
  readonly uptimeMs: number
  readonly status: 'healthy' | 'degraded'
  /** False while the last event is 30 s old or older. Once the service is about to end it stays false. */
  readonly isHealthy: boolean
}

export type LivenessDeps = {
  readonly clock: Clock
  readonly lastEvent: LastEvent
  /** Each change of the health. */
  readonly onHealth: (isHealthy: boolean) => void
  /** No event for 30 s of this run: the service ends. */
  readonly onSilent: () => void
}

/**
 * Liveness of the source by the age of the last event. Timers report changes, so that neither requests nor the wall clock influence them. A service that
 * starts with an old last event is unhealthy at once, but waits 30 s for an event before it ends.
 */
export function watchLiveness({ clock, lastEvent, onHealth, onSilent }: LivenessDeps): Liveness {
  const startedMs = clock.monotonicMs()
  let isSilent = false
  let wasHealthy = isHealthy()
  let timer: Timer | undefined

  function isHealthy(): boolean {
    return !isSilent && lastEvent.ageMs < SILENT_MS
  }

  function uptimeMs(): number {
    return clock.monotonicMs() - startedMs
  }

  function report(): void {
    const now = isHealthy()
    if (now === wasHealthy) return
    wasHealthy = now
    onHealth(now)
  }

  function check(): void {
    const silentMs = Math.min(lastEvent.ageMs, uptimeMs())
    isSilent = silentMs >= SILENT_MS
    report()
    if (isSilent) onSilent()
    else arm(SILENT_MS - (wasHealthy ? lastEvent.ageMs : silentMs))
  }

  function arm(delayMs: number): void {
    timer = clock.setTimer(delayMs, check)
    timer.unref?.()
  }

  check()
  return {
    beat(recordedMs) {
      if (recordedMs === undefined) lastEvent.arrived()
      else lastEvent.found(recordedMs)
      report()
    },
    get ageMs() {
      return lastEvent.ageMs
    },
    get uptimeMs() {
      return uptimeMs()
    },
    get status() {
      return lastEvent.ageMs <= DEGRADED_MS && !isSilent ? 'healthy' : 'degraded'
    },
    get isHealthy() {
      return isHealthy()
    },
    [Symbol.dispose]: () => timer?.cancel(),
  }
}
