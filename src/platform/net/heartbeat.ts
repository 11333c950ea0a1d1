import type { Clock } from '../../core/clock.ts'

export type HeartbeatOptions = {
  readonly pingMs: number
  /** Pings in a row that may go unanswered before the peer counts as gone. */
  readonly missesMax: number
}

/** F4 of the faults table: ping every 10 s, two misses, so that a half-open connection is found within 25 s. */
export const HEARTBEAT_DEFAULTS: HeartbeatOptions = { pingMs: 10_000, missesMax: 2 }

export type Heartbeat = Disposable & {
  /** Anything came from the peer. */
  heard(): void
}

/**
 * Finds a peer that is gone although its connection stands. Each ping has half a period to be answered, by anything at
 * all; after `missesMax` unanswered ones `onDead` is called, at most (missesMax + 0.5) periods after the last sign of life.
 */
export function startHeartbeat(
  { pingMs, missesMax }: HeartbeatOptions,
  { clock, ping, onDead }: { readonly clock: Clock; readonly ping: () => void; readonly onDead: () => void },
): Heartbeat {
  let isPingTurn = false
  let hasResponded = true
  let misses = 0
  const timer = clock.setRepeating(pingMs / 2, () => {
    isPingTurn = !isPingTurn
    if (!isPingTurn) {
      misses = hasResponded ? 0 : misses + 1
      if (misses < missesMax) return
      timer.cancel()
      onDead()
      return
    }
    hasResponded = false
    ping()
  })
  timer.unref?.()
  return {
    heard() {
      hasResponded = true
    },
    [Symbol.dispose]: () => timer.cancel(),
  }
}
