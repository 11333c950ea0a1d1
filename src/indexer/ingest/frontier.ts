import { RECENT_BLOCKS, type StoredBlock } from '../store.ts'
import type { SlotRange } from './slot-ranges.ts'

/** What links a block to the one before it. */
export type BlockLink = StoredBlock & { readonly parentSlot: number; readonly parentBlockhash: string }

/** The next action. */
export type Step<Block extends BlockLink> =
  /** This block extends the chain. */
  | { readonly kind: 'append'; readonly block: Block }
  /** These slots must be fetched: a block in them links the held blocks to the head. */
  | { readonly kind: 'fill'; readonly range: SlotRange }
  /** A fork: delete every block from this slot on. */
  | { readonly kind: 'rewind'; readonly fromSlot: number }
  | { readonly kind: 'wait' }

export type FrontierOptions = {
  /** Most blocks that wait for earlier ones; those farthest ahead are released, and fetched later. */
  readonly heldMax: number
}

/**
 * Orders blocks by the chain, in whichever order they come. Slot numbers are not enough, because slots may be skipped: a block is next when its parent
 * is the head. The head never passes a missing block.
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

  /** Adds a block. Returns the block that is released for it, which is the block itself when it is not needed. */
  offer(block: Block): Block | undefined {
    // A block at or below the head is stored already, or belongs to an abandoned fork.
    if (this.#isKnown(block) || this.#isBehind(block)) return block
    const replaced = this.#held.get(block.slot)
    this.#held.set(block.slot, block)
    if (replaced !== undefined || this.#held.size <= this.#options.heldMax) return replaced
    const farthest = Math.max(...this.#held.keys())
    const dropped = this.#held.get(farthest)
    this.#held.delete(farthest)
    return dropped
  }

  /** The node marked this slot dead. A later block for it is accepted again. */
  dropped(slot: number): Step<Block> {
    this.#held.delete(slot)
    if (!this.#recent.some((each) => each.slot === slot)) return { kind: 'wait' }
    return this.#rewind(slot)
  }

  /** Takes the next step; call it until it returns `wait` or `fill`. */
  step(): Step<Block> {
    const lowest = this.#lowest()
    if (lowest === undefined) return { kind: 'wait' }
    const { head } = this
    if (head === undefined) return this.#append(lowest)
    const next = this.#held.values().find((block) => isChildOf(block, head))
    if (next !== undefined) return this.#append(next)
    if (lowest.parentSlot > head.slot) return { kind: 'fill', range: { from: head.slot + 1, to: lowest.parentSlot } }
    // The held block forks off below the head: the stored fork ends at their common parent.
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

  /** Below the head only the fetched ancestors of a held fork are needed; they have a child among the held blocks. */
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
