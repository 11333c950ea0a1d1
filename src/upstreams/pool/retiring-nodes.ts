import type { Clock } from '../../core/clock.ts'
import type { UpstreamsMetrics } from '../metrics.ts'
import type { UpstreamNode } from '../node.ts'

/** Removed nodes with calls in flight. They are disposed when these have ended, or at the deadline. */
export type RetiringNodes = Disposable & {
  /** `sessions` carry the gRPC streams of the node, and are disposed with it. */
  add(node: UpstreamNode, sessions: Disposable): void
  /** Calls `done` when all are disposed; at once where there are none. */
  whenEmpty(done: () => void): void
}

/** How often a removed node is checked for calls in flight. */
const CHECK_MS = 100

export function createRetiringNodes(
  { deadlineMs }: { readonly deadlineMs: number },
  { clock, metrics }: { readonly clock: Clock; readonly metrics: UpstreamsMetrics },
): RetiringNodes {
  const retiring = new Set<Disposable>()
  let onEmpty = () => {}

  return {
    add(node, sessions) {
      const endMs = clock.monotonicMs() + deadlineMs
      const entry: Disposable = {
        [Symbol.dispose]() {
          timer.cancel()
          retiring.delete(entry)
          sessions[Symbol.dispose]()
          node[Symbol.dispose]()
          metrics.remove(node.label)
          if (retiring.size === 0) onEmpty()
        },
      }
      const check = () => {
        const isBusy = (node.http?.inFlight ?? 0) + node.openStreams.grpc > 0
        if (!isBusy || clock.monotonicMs() >= endMs) entry[Symbol.dispose]()
      }
      const timer = clock.setRepeating(CHECK_MS, check)
      timer.unref?.()
      retiring.add(entry)
      check()
    },
    whenEmpty(done) {
      onEmpty = done
      if (retiring.size === 0) done()
    },
    [Symbol.dispose]() {
      onEmpty = () => {}
      for (const entry of [...retiring]) entry[Symbol.dispose]()
    },
  }
}
