import type { AddedUsage } from '../../../access/store/model.ts'
import type { AccessStore } from '../../../access/store/store.ts'
import type { Clock } from '../../../core/clock.ts'

/** Totals of one subscription since it was first active. */
export type ActiveUse = {
  readonly subscriptionId: string
  readonly calls: number
  readonly units: number
  readonly refused: number
  readonly bytes: number
  /** Monotonic time of its last usage. */
  readonly lastMs: number
}

export type UsageWatch = {
  /** The store, with a counter on the usage that is written through it. */
  readonly store: AccessStore
  /** Subscriptions active in the last minute, newest first. */
  active(): readonly ActiveUse[]
  /** Totals of one subscription; zeros if it was not active. */
  of(subscriptionId: string): Pick<ActiveUse, 'calls' | 'units' | 'refused'>
}

/** The least recently active is dropped beyond it. */
const WATCHED_MAX = 1000
const ACTIVE_MS = 60_000
const NOTHING = { calls: 0, units: 0, refused: 0, bytes: 0 }

/**
 * Tracks active subscriptions from the usage rows that are written every second, so it adds no cost to a request.
 */
export function watchUsage(store: AccessStore, { clock }: { clock: Clock }): UsageWatch {
  /** In the order of their last use. */
  const seen = new Map<string, ActiveUse>()

  function note(rows: readonly AddedUsage[]): void {
    const lastMs = clock.monotonicMs()
    for (const { subscriptionId, calls, units, refused, bytes = 0 } of rows) {
      const before = seen.get(subscriptionId) ?? NOTHING
      seen.delete(subscriptionId)
      seen.set(subscriptionId, {
        subscriptionId,
        calls: before.calls + calls,
        units: before.units + units,
        refused: before.refused + refused,
        bytes: before.bytes + bytes,
        lastMs,
      })
    }
    for (const oldest of seen.keys()) {
      if (seen.size <= WATCHED_MAX) break
      seen.delete(oldest)
    }
  }

  return {
    store: {
      ...store,
      async addUsage(rows, lastUsed, mark) {
        await store.addUsage(rows, lastUsed, mark)
        note(rows)
      },
    },
    of: (subscriptionId) => seen.get(subscriptionId) ?? NOTHING,
    active() {
      const sinceMs = clock.monotonicMs() - ACTIVE_MS
      return [...seen.values()].filter(({ lastMs }) => lastMs >= sinceMs).toReversed()
    },
  }
}
