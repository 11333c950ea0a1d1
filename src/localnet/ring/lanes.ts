import type { Txn } from './txn.ts'
import type { Account, Slot } from './world.ts'

/** When the run of a transaction that counts began and ended, in nanoseconds from the start of the block. */
export type Run = { readonly startNs: number; readonly endNs: number; readonly isRepeated: boolean }

/** Handing results on costs this much for each transaction, one after the other. */
const COMMIT_NS = 2000

/**
 * Runs transactions on several lanes as a chain that executes optimistically does: each takes the lane that is free first and runs on
 * the state it finds. If by then an earlier transaction has not yet committed what this one touches, its result is worthless; it waits
 * for that commit and runs again. Results are committed in index order. Only the last run is recorded, so waiting shows as lanes that
 * stand idle: the more conflicts, the longer the block beside the sum of its runs.
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

/** When the last change of anything that the transaction touches was committed. Its fee is booked at the end and conflicts with none. */
function lastWriteNs({ sender, touches }: Txn, committedNs: ReadonlyMap<Slot | Account, number>): number {
  let last = committedNs.get(sender) ?? 0
  for (const { slots } of touches) for (const { slot } of slots) last = Math.max(last, committedNs.get(slot) ?? 0)
  return last
}
