import type { Socket } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import { descriptorLimit } from '../telemetry/process-metrics.ts'

/** Kept back from those who come in, for what serves those who are in: connections to nodes, the store, the operator's own page. */
const RESERVED_MAX = 64
/** Of a small limit at most this part. */
const RESERVED_SHARE = 0.25
/** The limit of a running process can be changed from outside. */
const LOOK_MS = 1000

export type DescriptorReserve = {
  /** Whether a connection that was just accepted took one of those kept back. */
  isTouchedBy(accepted: Socket): boolean
}

/** The system gives out the lowest number that is free, so the number of a new connection tells how many are left. */
export function createDescriptorReserve(clock: Clock, readLimit: () => number = descriptorLimit): DescriptorReserve {
  let firstReserved = Number.POSITIVE_INFINITY
  let lookAtMs = clock.monotonicMs()

  function look(nowMs: number): void {
    const limit = readLimit()
    // Not told this time, as when no descriptor is left to read it with: what was known stands, and whoever comes next asks again.
    if (limit <= 0) return
    lookAtMs = nowMs + LOOK_MS
    firstReserved = limit - Math.min(RESERVED_MAX, Math.floor(limit * RESERVED_SHARE))
  }

  return {
    isTouchedBy(accepted) {
      const nowMs = clock.monotonicMs()
      if (nowMs >= lookAtMs) look(nowMs)
      return descriptorOf(accepted) >= firstReserved
    },
  }
}

/** Below zero where the runtime does not tell it. */
function descriptorOf(socket: Socket): number {
  return (socket as { _handle?: { fd?: number } | null })._handle?.fd ?? -1
}
