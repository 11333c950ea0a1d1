import type { Clock } from '../../core/clock.ts'
import type { GrpcStream } from '../../platform/grpc/stream.ts'

/** A call is reset at a node only at this age: HTTP/2 servers close connections on which calls are reset right after they open. */
const AGE_MS = 250
/** Calls that a subscription may cancel below that age within the window; further calls are refused until the next window. */
const EARLY_MAX = 100
const WINDOW_MS = 10_000

/** Prevents that one customer who opens and resets calls makes a node close the connection that others share. */
export type ResetFloodGuard = {
  /** Whether the subscription has cancelled too many calls right after opening them. */
  isOverLimit(subscriptionId: string): boolean
  /** Cancels a call at its node, at once or when it is old enough. */
  cancel(stream: GrpcStream, openedMs: number, subscriptionId: string): void
}

export function createResetFloodGuard(clock: Clock): ResetFloodGuard {
  const early = new Map<string, number>()
  let windowMs = clock.monotonicMs()

  function counts(): Map<string, number> {
    const nowMs = clock.monotonicMs()
    if (nowMs - windowMs >= WINDOW_MS) {
      windowMs = nowMs
      early.clear()
    }
    return early
  }

  return {
    isOverLimit: (subscriptionId) => (counts().get(subscriptionId) ?? 0) >= EARLY_MAX,
    cancel(stream, openedMs, subscriptionId) {
      const waitMs = openedMs + AGE_MS - clock.monotonicMs()
      if (waitMs <= 0) return stream.cancel()
      const current = counts()
      current.set(subscriptionId, (current.get(subscriptionId) ?? 0) + 1)
      stream.pause()
      const timer = clock.setTimer(waitMs, () => stream.cancel())
      stream.onEnd(() => timer.cancel())
    },
  }
}

export const RESET_FLOOD = `limit reached: ${EARLY_MAX} calls cancelled within ${AGE_MS} ms of being made, in ${WINDOW_MS / 1000} s`
