import type { Account, Slot } from './state.ts'
import type { Txn } from './txn.ts'

/** Start and end of a transaction's last run, in nanoseconds from the start of the block. */
export type Run = { readonly startNs: number; readonly endNs: number; readonly isRepeated: boolean }

/** Duration of one commit; commits are sequential. */
const COMMIT_NS = 2000

/**
 * Schedules transactions on several lanes with optimistic parallel execution: each transaction takes the lane that is free first and
 * reads the committed state. If an earlier transaction commits a slot it has read afterwards, the result is discarded and the
 * transaction runs again after that commit. Results are committed in index order. Only the last run is recorded, so conflicts show as
 * idle lanes: the more conflicts, the longer the block takes compared with the sum of its runs.
 */
export function runOnLanes(txns: readonly Txn[], lanes: number): Run[] {
  const freeNs = new Float64Array(lanes)
  const committedNs = new Map<Slot | Account, number>()
  let lastCommitNs = 0
  return txns.map((txn) => {
    const lane = freeFirst(freeNs)
    const firstStartNs = freeNs[lane] as number
    const neededNs = lastWriteNs(txn, committedNs)
    const isRepeated = neededNs > firstStartNs
    const startNs = isRepeated ? Math.max(neededNs, firstStartNs + txn.costNs) : firstStartNs
    const endNs = startNs + txn.costNs
    freeNs[lane] = endNs
    lastCommitNs = Math.max(lastCommitNs, endNs) + COMMIT_NS
    committedNs.set(txn.sender, lastCommitNs)
    for (const { slots } of txn.touches)
      for (const { slot, start, end } of slots) if (start !== end) committedNs.set(slot, lastCommitNs)
    return { startNs, endNs, isRepeated }
  })
}

function freeFirst(freeNs: Float64Array): number {
  let first = 0
  for (let lane = 1; lane < freeNs.length; lane++)
    if ((freeNs[lane] as number) < (freeNs[first] as number)) first = lane
  return first
}

/** When the last write of a slot or sender that the transaction touches was committed. Fees are applied at the end and do not conflict. */
function lastWriteNs({ sender, touches }: Txn, committedNs: ReadonlyMap<Slot | Account, number>): number {
  let last = committedNs.get(sender) ?? 0
  for (const { slots } of touches) for (const { slot } of slots) last = Math.max(last, committedNs.get(slot) ?? 0)
  return last
}
