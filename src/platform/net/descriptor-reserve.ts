import type { Socket } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import { descriptorLimit } from '../telemetry/process-metrics.ts'

/** Descriptors reserved for other uses than client connections: connections to nodes, the store, the operator's listener. */
const RESERVED_MAX = 64
/** At most this share of a small limit. */
const RESERVED_SHARE = 0.25
/** The limit is read again after this long: it can be changed from outside (prlimit). */
const REFRESH_MS = 1000

export type DescriptorReserve = {
  /** Whether a connection that was just accepted took a reserved descriptor. */
  isTouchedBy(accepted: Socket): boolean
}

/** The kernel assigns the lowest free number, so the number of a new connection shows how many are free. */
export function createDescriptorReserve(clock: Clock, readLimit: () => number = descriptorLimit): DescriptorReserve {
  let firstReserved = Number.POSITIVE_INFINITY
  let refreshAtMs = clock.monotonicMs()

  function refresh(nowMs: number): void {
    const limit = readLimit()
    // Unreadable, as when no descriptor is free to read it with: the last value stays, and the next connection tries again.
    if (limit <= 0) return
    refreshAtMs = nowMs + REFRESH_MS
    firstReserved = limit - Math.min(RESERVED_MAX, Math.floor(limit * RESERVED_SHARE))
  }

  return {
    isTouchedBy(accepted) {
      const nowMs = clock.monotonicMs()
      if (nowMs >= refreshAtMs) refresh(nowMs)
      return descriptorOf(accepted) >= firstReserved
    },
  }
}

/** -1 where the runtime does not expose it. */
function descriptorOf(socket: Socket): number {
  return (socket as { _handle?: { fd?: number } | null })._handle?.fd ?? -1
}
