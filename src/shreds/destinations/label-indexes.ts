import { LABELLED_DESTINATIONS_MAX } from '../metrics.ts'
import type { Lease } from '../relay/protocol.ts'

/** Indexes of served destinations for metric labels (metrics.ts). A subscription keeps its index while it is served; free ones are reused. */
export type LabelIndexes = {
  of(subscriptionId: string): number | undefined
  assign(leases: readonly Lease[]): void
}

export function createLabelIndexes(): LabelIndexes {
  const indexes = new Map<string, number>()
  return {
    of: (subscriptionId) => indexes.get(subscriptionId),
    assign(leases) {
      const served = new Set(leases.map(({ subscriptionId }) => subscriptionId))
      for (const subscriptionId of indexes.keys()) if (!served.has(subscriptionId)) indexes.delete(subscriptionId)
      const taken = new Set(indexes.values())
      let next = 1
      for (const subscriptionId of served) {
        if (indexes.has(subscriptionId)) continue
        while (taken.has(next)) next += 1
        if (next > LABELLED_DESTINATIONS_MAX) return
        taken.add(next)
        indexes.set(subscriptionId, next)
      }
    },
  }
}
