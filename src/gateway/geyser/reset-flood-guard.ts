import type { Clock } from '../../core/clock.ts'
import type { GrpcStream } from '../../platform/grpc/stream.ts'

/** Younger calls are taken back from a node only when they are this old: servers end connections on which calls are reset as soon as they are made. */
const AGE_MS = 250
/** So many calls may a subscription give up that early within the window; then it has to wait for the next one. */
const EARLY_MAX = 100
const WINDOW_MS = 10_000

/** Keeps one customer's opening and resetting of calls from costing the others their shared connection to a node. */
export type EarlyLeave = {
  /** Whether the subscription has given up too many calls right after making them. */
  isTooOften(subscriptionId: string): boolean
  /** Takes a call back from its node. */
  leave(stream: GrpcStream, openedMs: number, subscriptionId: string): void
}

export function createEarlyLeave(clock: Clock): EarlyLeave {
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
    isTooOften: (subscriptionId) => (counts().get(subscriptionId) ?? 0) >= EARLY_MAX,
    leave(stream, openedMs, subscriptionId) {
      const leftMs = openedMs + AGE_MS - clock.monotonicMs()
      if (leftMs <= 0) return stream.cancel()
      const known = counts()
      known.set(subscriptionId, (known.get(subscriptionId) ?? 0) + 1)
      stream.pause()
      const timer = clock.setTimer(leftMs, () => stream.cancel())
      stream.onEnd(() => timer.cancel())
    },
  }
}

export const TOO_OFTEN = `limit reached: ${EARLY_MAX} calls cancelled within ${AGE_MS} ms of being made, in ${WINDOW_MS / 1000} s`
