import type { UsageRow } from '../../../access/store/model.ts'
import type { AccessStore } from '../../../access/store/store.ts'
import type { Clock } from '../../../core/clock.ts'

/** What one subscription did since it was first seen active. */
export type ActiveUse = {
  readonly subscriptionId: string
  readonly calls: number
  readonly units: number
  readonly refused: number
  /** By the monotonic clock. */
  readonly lastMs: number
}

export type UsageWatch = {
  /** The store itself, with an eye on the use that is written through it. */
  readonly store: AccessStore
  /** Those active within the last while, the newest first. */
  active(): readonly ActiveUse[]
  /** What this one did since it was first seen; nothing where it was not. */
  of(subscriptionId: string): Pick<ActiveUse, 'calls' | 'units' | 'refused'>
}

/** The quietest is forgotten when there are more. */
const WATCHED_MAX = 1000
const ACTIVE_MS = 60_000

/**
 * Who is busy right now. Use is counted in memory and written every second; looking on there costs nothing on the way of a request, and nothing at
 * all for customers that are quiet.
 */
export function watchUsage(store: AccessStore, { clock }: { clock: Clock }): UsageWatch {
  /** In the order of their last use. */
  const seen = new Map<string, ActiveUse>()

  function note(rows: readonly UsageRow[]): void {
    const lastMs = clock.monotonicMs()
    for (const { subscriptionId, calls, units, refused } of rows) {
      const before = seen.get(subscriptionId) ?? { calls: 0, units: 0, refused: 0 }
      seen.delete(subscriptionId)
      seen.set(subscriptionId, {
        subscriptionId,
        calls: before.calls + calls,
        units: before.units + units,
        refused: before.refused + refused,
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
      async addUsage(rows, lastUsed) {
        await store.addUsage(rows, lastUsed)
        note(rows)
      },
    },
    of: (subscriptionId) => seen.get(subscriptionId) ?? { calls: 0, units: 0, refused: 0 },
    active() {
      const sinceMs = clock.monotonicMs() - ACTIVE_MS
      return [...seen.values()].filter(({ lastMs }) => lastMs >= sinceMs).toReversed()
    },
  }
}
