import { RECENT_BLOCKS, type StoredBlock } from '../store.ts'
import type { SlotRange } from './slot-ranges.ts'

/** What links a block to the one before it. */
export type BlockLink = StoredBlock & { readonly parentSlot: number; readonly parentBlockhash: string }

/** What is to be done next. */
export type Step<Block extends BlockLink> =
  /** This block continues the chain. */
  | { readonly kind: 'append'; readonly block: Block }
  /** These slots must be asked for: something in them links what waits to what is there. */
  | { readonly kind: 'fill'; readonly range: SlotRange }
  /** The chain went another way: forget every block from this slot on. */
  | { readonly kind: 'rewind'; readonly fromSlot: number }
  | { readonly kind: 'wait' }

export type FrontierOptions = {
  /** Blocks that may wait for what comes before them; those farthest ahead are let go, and asked for later. */
  readonly heldMax: number
}

/**
 * Puts blocks in the order of the chain, whichever order they come in. Slot numbers alone prove nothing, since slots may be skipped: a block is
 * next when its parent is the head. The head never passes a block that is missing.
 */
export class Frontier<Block extends BlockLink> {
  readonly #recent: StoredBlock[]
  readonly #held = new Map<number, Block>()
  readonly #options: FrontierOptions

  constructor(recent: readonly StoredBlock[], options: FrontierOptions) {
    this.#recent = [...recent]
    this.#options = options
  }

  get head(): StoredBlock | undefined {
    return this.#recent.at(-1)
  }

  get heldCount(): number {
    return this.#held.size
  }

  /** A block has come, by whatever way. Gives back the one that is let go for it: itself when it is of no use. */
  offer(block: Block): Block | undefined {
    // A block at or below the head is one we have, or of a branch that the chain has left since.
    if (this.#isKnown(block) || this.#isBehind(block)) return block
    const replaced = this.#held.get(block.slot)
    this.#held.set(block.slot, block)
    if (replaced !== undefined || this.#held.size <= this.#options.heldMax) return replaced
    const farthest = Math.max(...this.#held.keys())
    const dropped = this.#held.get(farthest)
    this.#held.delete(farthest)
    return dropped
  }

  /** The node has given up this slot. Told once more as a block, it comes back. */
  dropped(slot: number): Step<Block> {
    this.#held.delete(slot)
    if (!this.#recent.some((each) => each.slot === slot)) return { kind: 'wait' }
    return this.#rewind(slot)
  }

  /** Takes the next step; call it until it says to wait, or that something is missing. */
  step(): Step<Block> {
    const lowest = this.#lowest()
    if (lowest === undefined) return { kind: 'wait' }
    const { head } = this
    if (head === undefined) return this.#append(lowest)
    const next = this.#held.values().find((block) => isChildOf(block, head))
    if (next !== undefined) return this.#append(next)
    if (lowest.parentSlot > head.slot) return { kind: 'fill', range: { from: head.slot + 1, to: lowest.parentSlot } }
    // It branches off below the head. Where the branches meet, ours ends.
    if (this.#recent.some((each) => each.slot === lowest.parentSlot && each.blockhash === lowest.parentBlockhash))
      return this.#rewind(lowest.parentSlot + 1)
    return { kind: 'fill', range: { from: lowest.parentSlot, to: lowest.parentSlot } }
  }

  #append(block: Block): Step<Block> {
    this.#held.delete(block.slot)
    this.#recent.push({ slot: block.slot, blockhash: block.blockhash })
    if (this.#recent.length > RECENT_BLOCKS) this.#recent.shift()
    return { kind: 'append', block }
  }

  #rewind(fromSlot: number): Step<Block> {
    while ((this.head?.slot ?? -1) >= fromSlot) this.#recent.pop()
    return { kind: 'rewind', fromSlot }
  }

  #isKnown({ slot, blockhash }: Block): boolean {
    return this.#recent.some((each) => each.slot === slot && each.blockhash === blockhash)
  }

  /**
   * Below the head, only blocks that are asked for are of interest: those that lead from a branch that has come back to ours. They have a
   * child among the held.
   */
  #isBehind(block: Block): boolean {
    const { head } = this
    if (head === undefined || block.slot > head.slot) return false
    return !this.#held.values().some((each) => isChildOf(each, block))
  }

  #lowest(): Block | undefined {
    let lowest: Block | undefined
    for (const block of this.#held.values()) if (lowest === undefined || block.slot < lowest.slot) lowest = block
    return lowest
  }
}

function isChildOf(block: BlockLink, parent: StoredBlock): boolean {
  return block.parentSlot === parent.slot && block.parentBlockhash === parent.blockhash
}
