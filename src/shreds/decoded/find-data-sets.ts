import type { FecSet } from './fec-set.ts'
import type { OpenSlot } from './slot.ts'

/**
 * The data sets that are complete now that more is known of this FEC set, each as its last FEC set. Knowledge goes forward through the slot: where
 * one data set ends the next one starts, and a complete FEC set passes the start of its data set on to the one that continues it.
 */
export function findCompleteDataSets(slot: OpenSlot, from: FecSet): FecSet[] {
  const complete: FecSet[] = []
  findStart(slot, from)
  const open = [from]
  for (let set = open.pop(); set !== undefined; set = open.pop()) {
    if (set.start !== -1 && set.isComplete && set.endsDataSet) complete.push(set)
    const isStartKnownBehind = set.endsDataSet || (set.isComplete && set.start !== -1)
    if (!isStartKnownBehind) continue
    for (let next = slot.sets[set.index + 1]; next !== undefined; next = next.other)
      if (next.start === -1 && findStart(slot, next)) open.push(next)
  }
  return complete
}

/** Whether the start of the data set that this FEC set belongs to is known. */
function findStart(slot: OpenSlot, set: FecSet): boolean {
  if (set.start !== -1) return true
  if (set.index === 0) {
    set.start = 0
    return true
  }
  for (let previous = slot.sets[set.index - 1]; previous !== undefined; previous = previous.other) {
    if (!set.follows(previous)) continue
    if (previous.endsDataSet) set.start = set.index
    else if (previous.isComplete && previous.start !== -1) {
      set.start = previous.start
      set.previous = previous
    }
    if (set.start !== -1) return true
  }
  return false
}
