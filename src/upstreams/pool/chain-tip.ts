import type { UpstreamNode } from '../node.ts'

/**
 * The newest slot of the chain, as far as the nodes of a pool confirm it. A slot more than a day above all others is not believed at once: by that slot
 * alone all others would lag, and its node would get all calls. A smaller lead is: the others may lag, or be restored from an old snapshot.
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
  readonly slotMs: () => number
}

/** No node that works falls back so far; a node of another cluster, or one that reports a number that is no slot, is further ahead. */
const LEAD_MS_MAX = 86_400_000
/** After a start the nodes report their slots one after another; until then none is the first that all others are compared with. */
const SETTLE_MS = 10_000
/** A node whose slot stands still for this time does not show where the chain is, while others move. */
const STILL_MS = 30_000

type Seen = { readonly slot: number; readonly movedAtMs: number }

export function createChainTip({ slotMs }: ChainTipOptions): ChainTip {
  let tip = 0
  let startedMs: number | undefined
  let seen = new Map<TipNode, Seen>()

  const leadSlots = () => Math.ceil(LEAD_MS_MAX / slotMs())

  function look(nodes: readonly TipNode[], nowMs: number): readonly TipNode[] {
    const known = nodes.filter(({ health }) => health.slot > 0)
    const next = new Map<TipNode, Seen>()
    for (const node of known) {
      const before = seen.get(node)
      const { slot } = node.health
      next.set(node, { slot, movedAtMs: before?.slot === slot ? before.movedAtMs : nowMs })
    }
    seen = next
    return known
  }

  /** Another node has reached this slot, or has received shreds of it. */
  function isConfirmed(node: TipNode, known: readonly TipNode[]): boolean {
    const from = node.health.slot - leadSlots()
    return known.some((other) => other !== node && Math.max(other.health.slot, other.health.shredSlot) >= from)
  }

  function believed(known: readonly TipNode[], nowMs: number): readonly TipNode[] {
    const isSettled = nowMs - (startedMs ?? nowMs) >= SETTLE_MS
    const moving = known.filter((node) => nowMs - (seen.get(node)?.movedAtMs ?? nowMs) < STILL_MS)
    const shown = moving.length > 0 ? moving : known
    // Where two nodes differ at the start, either may be right: the one ahead counts, as long as it moves.
    if (known.length < 2 || (!isSettled && known.length < 3)) return shown
    const right = shown.filter((node) => isConfirmed(node, known) || (isSettled && !isAhead(node)))
    return right.length > 0 ? right : shown
  }

  const isAhead = ({ health }: TipNode) => health.slot > tip + leadSlots()

  return {
    get slot() {
      return tip
    },
    assess(nodes, nowMs) {
      const known = look(nodes, nowMs)
      if (known.length > 0) startedMs ??= nowMs
      tip = believed(known, nowMs).reduce((best, { health }) => Math.max(best, health.slot), 0)
    },
    isAhead,
  }
}
