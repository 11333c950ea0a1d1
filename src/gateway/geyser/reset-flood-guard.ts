import type { Clock } from '../../core/clock.ts'
import type { SharedTable } from '../../core/shared-table.ts'
import { createWindowCounts, createWindowTable } from '../../core/window-counts.ts'
import type { GrpcStream } from '../../platform/grpc/stream.ts'
import type { CallLimit } from './refusal.ts'

/** A call is reset at a node only at this age: HTTP/2 servers close connections on which calls are reset right after they open. */
const AGE_MS = 250
/** Calls that a subscription may cancel below that age within the window; further calls are refused until the next window. */
const EARLY_MAX = 100
const WINDOW_MS = 10_000
/** Beyond it the subscriptions without an early cancel for the longest time are forgotten. */
const SUBSCRIPTIONS_MAX = 10_000

/** Prevents that one customer who opens and resets calls makes a node close the connection that others share. */
export type ResetFloodGuard = {
  /** Whether the subscription has cancelled too many calls right after opening them. */
  isOverLimit(subscriptionId: string): boolean
  /** Cancels a call at its node, at once or when it is old enough. */
  cancel(stream: GrpcStream, openedMs: number, subscriptionId: string): void
}

/** Without `table` the counts are of this thread alone. */
export function createResetFloodGuard(
  clock: Clock,
  table: SharedTable = createWindowTable(SUBSCRIPTIONS_MAX),
): ResetFloodGuard {
  const early = createWindowCounts(table, WINDOW_MS, () => clock.monotonicMs())
  return {
    isOverLimit: (subscriptionId) => early.of(subscriptionId) >= EARLY_MAX,
    cancel(stream, openedMs, subscriptionId) {
      const waitMs = openedMs + AGE_MS - clock.monotonicMs()
      if (waitMs <= 0) return stream.cancel()
      early.add(subscriptionId)
      stream.pause()
      const timer = clock.setTimer(waitMs, () => stream.cancel())
      stream.onEnd(() => timer.cancel())
    },
  }
}

export const CANCELLED_CALLS: CallLimit = {
  limit: 'cancelledCalls',
  size: EARLY_MAX,
  what: `calls cancelled within ${AGE_MS} ms of being made, in ${WINDOW_MS / 1000} s`,
  retryAfterMs: WINDOW_MS,
}
