/** What choosing a node needs to know of it. */
export type Candidate = {
  /** In rotation at all: not drained, not left alone by its breaker, and with a door of the kind wanted. */
  readonly isAvailable: boolean
  /** Too far behind: taken only when nothing better is left. */
  readonly isLagging: boolean
  /** 0 while unknown. */
  readonly slot: number
  /** Work on its way, divided by its weight. */
  readonly load: number
}

export type PickCriteria = {
  /** The newest slot this client was shown; 0 for a new one. */
  readonly minSlot: number
  /** A number that moves on with each choice, so that equal nodes take turns. */
  readonly turn: number
}

/**
 * The node for one call: one that does not take the client back in time before one that would, one in rotation before one
 * that lags, and among equals the one with the least to do. When every node is behind what the client has seen, the newest.
 */
export function pick<Node extends Candidate>(
  nodes: readonly Node[],
  { minSlot, turn }: PickCriteria,
): Node | undefined {
  let best: Node | undefined
  let bestRank = 0
  for (let step = 0; step < nodes.length; step++) {
    const node = nodes[(turn + step) % nodes.length] as Node
    if (!node.isAvailable) continue
    const rank = rankOf(node, minSlot)
    if (best === undefined || rank > bestRank || (rank === bestRank && isBetter(node, best, rank))) {
      best = node
      bestRank = rank
    }
  }
  return best
}

function rankOf({ isLagging, slot }: Candidate, minSlot: number): number {
  if (slot >= minSlot) return isLagging ? 3 : 4
  return isLagging ? 1 : 2
}

function isBetter(node: Candidate, than: Candidate, rank: number): boolean {
  if (rank <= 2 && node.slot !== than.slot) return node.slot > than.slot
  return node.load < than.load
}
