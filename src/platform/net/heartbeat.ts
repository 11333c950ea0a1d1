import type { Clock } from '../../core/clock.ts'

export type HeartbeatOptions = {
  readonly pingMs: number
  /** Consecutive pings without a reply after which the peer counts as dead. */
  readonly missesMax: number
}

/** F4: a half-open connection is found within 25 s. */
export const HEARTBEAT_DEFAULTS: HeartbeatOptions = { pingMs: 10_000, missesMax: 2 }

export type Heartbeat = Disposable & {
  /** Called for anything that comes from the peer. */
  heard(): void
}

/**
 * Finds a dead peer behind an open connection. After each ping anything must come from the peer within half a period; after `missesMax` misses
 * `onDead` is called, at most (missesMax + 0.5) periods after the last byte.
 */
export function startHeartbeat(
  { pingMs, missesMax }: HeartbeatOptions,
  { clock, ping, onDead }: { readonly clock: Clock; readonly ping: () => void; readonly onDead: () => void },
): Heartbeat {
  let isPingDue = false
  let wasHeard = true
  let misses = 0
  const timer = clock.setRepeating(pingMs / 2, () => {
    isPingDue = !isPingDue
    if (!isPingDue) {
      misses = wasHeard ? 0 : misses + 1
      if (misses < missesMax) return
      timer.cancel()
      onDead()
      return
    }
    wasHeard = false
    ping()
  })
  timer.unref?.()
  return {
    heard() {
      wasHeard = true
    },
    [Symbol.dispose]: () => timer.cancel(),
  }
}
