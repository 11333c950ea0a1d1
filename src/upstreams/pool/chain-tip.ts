import type { UpstreamNode } from '../node.ts'

/**
 * The newest slot of the chain, as far as the nodes of a pool confirm it. A node that reports a slot far above it is not believed: by that slot alone all
 * others would lag, and it would get all calls.
 */
export type ChainTip = {
  readonly slot: number
  /** Reads the slots of all nodes. */
  assess(nodes: readonly TipNode[], nowMs: number): void
  /** Whether this node is far ahead of the tip. */
  isAhead(node: TipNode): boolean
}

/** What is read of a node. */
export type TipNode = Pick<UpstreamNode, 'health'>

export type ChainTipOptions = {
  /** By how much a node may be ahead of the others: at least the lag with which a node is taken out of rotation. */
  readonly leadMsMax: number
  readonly slotMs: () => number
}

/** After a start the nodes report their slots one after another; until then none is the first that all others are compared with. */
const SETTLE_MS = 10_000
/** How much faster than known a chain may be. */
const PACE_MAX = 2
/** A node whose slot stands still for this time does not show where the chain is, while others move. */
const STILL_MS = 30_000

type Seen = { slot: number; movedAtMs: number; aheadSinceMs: number | undefined }

export function createChainTip({ leadMsMax, slotMs }: ChainTipOptions): ChainTip {
  let tip = 0
  let tipAtMs = 0
  let startedMs: number | undefined
  let seen = new Map<TipNode, Seen>()

  const leadSlots = () => Math.ceil(leadMsMax / slotMs())

  function look(nodes: readonly TipNode[], nowMs: number): readonly TipNode[] {
    const known = nodes.filter(({ health }) => health.slot > 0)
    const next = new Map<TipNode, Seen>()
    for (const node of known) {
      const before = seen.get(node)
      const { slot } = node.health
      const movedAtMs = before?.slot === slot ? before.movedAtMs : nowMs
      next.set(node, { slot, movedAtMs, aheadSinceMs: before?.aheadSinceMs })
    }
    seen = next
    return known
  }

  /** Another node has reached this slot, or has received shreds of it. */
  function isConfirmed(node: TipNode, known: readonly TipNode[]): boolean {
    const from = node.health.slot - leadSlots()
    return known.some((other) => other !== node && Math.max(other.health.slot, other.health.shredSlot) >= from)
  }

  /** The chain may have come as far since the tip was last seen, or the node has kept its lead for as long as the lead is. */
  function isReached(node: TipNode, nowMs: number): boolean {
    const lead = node.health.slot - tip
    const { aheadSinceMs = nowMs } = seen.get(node) ?? {}
    return (
      lead <= leadSlots() + (PACE_MAX * (nowMs - tipAtMs)) / slotMs() ||
      nowMs - aheadSinceMs >= Math.max(1, lead * slotMs())
    )
  }

  function believed(known: readonly TipNode[], nowMs: number): readonly TipNode[] {
    const isSettled = nowMs - (startedMs ?? nowMs) >= SETTLE_MS
    const moving = known.filter((node) => nowMs - (seen.get(node)?.movedAtMs ?? nowMs) < STILL_MS)
    const shown = moving.length > 0 ? moving : known
    // Of two nodes that differ at the start, either may be right: the one ahead counts, as long as it moves.
    if (known.length < 2 || (!isSettled && known.length < 3)) return shown
    const right = shown.filter((node) => isConfirmed(node, known) || (isSettled && isReached(node, nowMs)))
    return right.length > 0 ? right : shown
  }

  return {
    get slot() {
      return tip
    },
    assess(nodes, nowMs) {
      const known = look(nodes, nowMs)
      if (known.length > 0) startedMs ??= nowMs
      const next = believed(known, nowMs).reduce((best, { health }) => Math.max(best, health.slot), 0)
      if (next !== tip) tipAtMs = nowMs
      tip = next
      for (const [node, one] of seen) one.aheadSinceMs = this.isAhead(node) ? (one.aheadSinceMs ?? nowMs) : undefined
    },
    isAhead: ({ health }) => health.slot > tip + leadSlots(),
  }
}
