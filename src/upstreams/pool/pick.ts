/** What the choice of a node depends on. */
export type Candidate = {
  /** In rotation: not drained, breaker closed, and with an endpoint of the kind needed. */
  readonly isAvailable: boolean
  /** It has stopped responding, or refuses what is opened there: picked only when every other one does too. */
  readonly isUnresponsive: boolean
  /** It fails many calls, perhaps because of their content: of nodes that are equal otherwise, the others are picked first. */
  readonly isSuspect: boolean
  /** Too far behind: picked only when nothing better is available. */
  readonly isLagging: boolean
  /** 0 while unknown. */
  readonly slot: number
  /** Work in flight, divided by its weight. */
  readonly load: number
}

export type PickCriteria = {
  /** The newest slot this client has seen; 0 for a new one. */
  readonly minSlot: number
  /** Incremented with each pick, so that equal nodes alternate. */
  readonly offset: number
}

/**
 * Picks the node for one call: a node that responds, then a node at or above the slot the client has seen before one below it, then a node that does not lag, then
 * one that is not suspect, then the one with the least load. When every node is below that slot, the one with the highest slot.
 */
export function pick<Node extends Candidate>(
  nodes: readonly Node[],
  { minSlot, offset }: PickCriteria,
): Node | undefined {
  let best: Node | undefined
  let bestRank = 0
  for (let step = 0; step < nodes.length; step++) {
    const node = nodes[(offset + step) % nodes.length] as Node
    if (!node.isAvailable) continue
    const rank = rankOf(node, minSlot)
    if (best === undefined || rank > bestRank || (rank === bestRank && isBetter(node, best, rank))) {
      best = node
      bestRank = rank
    }
  }
  return best
}

const RESPONDS = 8
const AT_MIN_SLOT = 4

function rankOf({ isUnresponsive, isLagging, isSuspect, slot }: Candidate, minSlot: number): number {
  return (
    (isUnresponsive ? 0 : RESPONDS) + (slot >= minSlot ? AT_MIN_SLOT : 0) + (isLagging ? 0 : 2) + (isSuspect ? 0 : 1)
  )
}

function isBetter(node: Candidate, than: Candidate, rank: number): boolean {
  if ((rank & AT_MIN_SLOT) === 0 && node.slot !== than.slot) return node.slot > than.slot
  return node.load < than.load
}
