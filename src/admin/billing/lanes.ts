import type { BillingEvent } from '../../access/store/billing/tables.ts'
import type { BillingSink } from './sink.ts'

/** Batches of one lane in a group, so that pausing and the right to send are looked at again soon. */
const LANE_BATCHES_MAX = 8
/** Lanes that are remembered as failing; of more, the one that failed first is forgotten. */
const FAILED_MAX = 1000

/** Batches that are sent one after another. */
export type Lane = {
  /** Undefined where the sink has no lanes: each batch is one. */
  readonly key: string | undefined
  readonly batches: readonly (readonly BillingEvent[])[]
}

export type Lanes = {
  /** Whether a choice from these events would have as many lanes as there are requests at the same time, without those that fail. */
  areEnough(events: readonly BillingEvent[]): boolean
  /** The lanes of a group: in the order of the events, and those that failed after the others. */
  choose(events: readonly BillingEvent[]): Lane[]
  record(lane: Lane, hasFailed: boolean): void
}

/** Divides the events that wait into lanes, so that one that fails does not keep the others waiting. */
export function createLanes({
  batchMax,
  parallel,
  laneOf,
}: Pick<BillingSink, 'batchMax' | 'parallel' | 'laneOf'>): Lanes {
  /** In the order in which they failed last. */
  const failed = new Set<string>()

  return {
    areEnough(events) {
      if (laneOf === undefined) return events.length >= batchMax * parallel
      const keys = new Set(events.map(laneOf))
      for (const key of failed) keys.delete(key)
      return keys.size >= parallel
    },
    choose(events) {
      if (laneOf === undefined)
        return inBatches(events.slice(0, batchMax * parallel), batchMax).map((batch) => ({
          key: undefined,
          batches: [batch],
        }))
      const byLane = Map.groupBy(events, laneOf)
      const working = [...byLane.keys()].filter((key) => !failed.has(key))
      const failing = [...failed].filter((key) => byLane.has(key))
      return [...working, ...failing].slice(0, parallel).map((key) => {
        const some = (byLane.get(key) ?? []).slice(0, batchMax * LANE_BATCHES_MAX)
        return { key, batches: inBatches(some, batchMax) }
      })
    },
    record({ key }, hasFailed) {
      if (key === undefined) return
      failed.delete(key)
      if (hasFailed) failed.add(key)
      const [first] = failed
      if (failed.size > FAILED_MAX && first !== undefined) failed.delete(first)
    },
  }
}

function inBatches(events: readonly BillingEvent[], size: number): BillingEvent[][] {
  const batches: BillingEvent[][] = []
  for (let at = 0; at < events.length; at += size) batches.push(events.slice(at, at + size))
  return batches
}
