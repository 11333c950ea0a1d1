import assert from 'node:assert/strict'
import { RECENT_BLOCKS, type StoredBlock } from '../store/store.ts'
import type { SlotRange } from './slot-ranges.ts'

/** What links a block to the one before it. */
export type BlockLink = StoredBlock & { readonly parentSlot: number; readonly parentBlockhash: string }

/** The next action. */
export type Step<Block extends BlockLink> =
  /** This block extends the chain. */
  | { readonly kind: 'append'; readonly block: Block }
  /** These slots must be fetched: a block in them links the held blocks to the head. */
  | { readonly kind: 'fill'; readonly range: SlotRange }
  /** A fork: every block from this slot on is not part of the chain; `blocks` is their number. */
  | { readonly kind: 'rewind'; readonly fromSlot: number; readonly blocks: number }
  | { readonly kind: 'wait' }

export type FrontierOptions = {
  /** Most blocks that wait for earlier ones; those farthest ahead are released, and fetched later. */
  readonly heldMax: number
  /** First slot of the range that the recent blocks end, where they are all of it. */
  readonly firstSlot?: number | undefined
}

/**
 * Orders blocks by the chain, in whichever order they come. Slot numbers are not enough, because slots may be skipped: a block is next when its parent
 * is the head. The head never passes a missing block.
 */
export class Frontier<Block extends BlockLink> {
  readonly #recent: StoredBlock[]
  readonly #held = new Map<number, Block>()
  readonly #options: FrontierOptions
  /** A block of the chain that is known not to be final, until another takes its place. */
  #rejected: StoredBlock | undefined
  #released: Block[] = []
  /** First slot of the range that the chain covers; undefined where older blocks than the recent ones belong to it. */
  #firstSlot: number | undefined

  constructor(recent: readonly StoredBlock[], options: FrontierOptions) {
    this.#recent = [...recent]
    this.#options = options
    this.#firstSlot = recent.length < RECENT_BLOCKS ? options.firstSlot : undefined
  }

  get head(): StoredBlock | undefined {
    return this.#recent.at(-1)
  }

  get heldCount(): number {
    return this.#held.size
  }

  /** The blockhash that the chain has in a slot, as far as forks are recognised. */
  blockhashAt(slot: number): string | undefined {
    return this.#recent.find((each) => each.slot === slot)?.blockhash
  }

  /** The blocks that are no longer needed, since the last call. */
  takeReleased(): readonly Block[] {
    const released = this.#released
    this.#released = []
    return released
  }

  /** Adds a block, which is released at once when it is not needed. */
  offer(block: Block): void {
    // A block at or below the head is stored already, or belongs to an abandoned fork.
    if (this.#isKnown(block) || this.#isBehind(block)) return this.#release(block)
    const replaced = this.#held.get(block.slot)
    this.#held.set(block.slot, block)
    if (replaced !== undefined) return this.#release(replaced)
    if (this.#held.size > this.#options.heldMax) this.#releaseHeld(Math.max(...this.#held.keys()))
  }

  /** Removes what the node marked dead: any block of this slot, or the one with this blockhash. A later block for it is accepted again. */
  removeDead(slot: number, blockhash?: string): Step<Block> {
    this.#releaseHeld(slot, blockhash)
    const at = this.#recent.findIndex((each) => each.slot === slot)
    if (at === -1 || (blockhash !== undefined && this.#recent[at]?.blockhash !== blockhash)) return { kind: 'wait' }
    // Only this block proved that the slots between its parent and itself are empty.
    return this.#rewind((this.#recent[at - 1]?.slot ?? slot - 1) + 1)
  }

  /** Another block of this slot is final. One that the chain has stays until its replacement is held, so that both change together. */
  reject(slot: number, blockhash: string): void {
    this.#releaseHeld(slot, blockhash)
    if (this.blockhashAt(slot) !== blockhash || (this.#rejected?.slot ?? slot) < slot) return
    this.#rejected = { slot, blockhash }
  }

  /** The block that the chain has in this slot is final: held blocks of other forks are released. */
  markFinal(slot: number): void {
    const blockhash = this.blockhashAt(slot)
    if (blockhash === undefined) return
    if ((this.#rejected?.slot ?? slot + 1) <= slot) this.#rejected = undefined
    for (const block of this.#held.values()) {
      const isFork = block.parentSlot < slot || (block.parentSlot === slot && block.parentBlockhash !== blockhash)
      if (isFork) this.#releaseHeld(block.slot)
    }
  }

  /**
   * Releases the held blocks whose parent should be in this slot: the nodes have our block there, or none. They are fetched again when they are needed.
   */
  releaseUnlinked(slot: number): void {
    if (this.#rejected !== undefined || slot > (this.head?.slot ?? -1)) return
    for (const block of this.#held.values())
      if (block.parentSlot === slot && !this.#hasParent(block)) this.#releaseHeld(block.slot)
  }

  /** The held block that waits for the end of this range, where the range follows the head. */
  childAfter(range: SlotRange): Block | undefined {
    const lowest = this.#lowest()
    const isNext = range.from === (this.head?.slot ?? -1) + 1 && range.to === lowest?.parentSlot
    return isNext && this.#rejected === undefined ? lowest : undefined
  }

  /** The blocks of this range, which follows the head, cannot be had: the block after it begins a new range of the tables. */
  passGap(range: SlotRange): void {
    assert(this.childAfter(range) !== undefined, 'a gap is passed between the head and a held block')
    this.#recent.length = 0
    this.#firstSlot = undefined
  }

  /** Takes the next step; call it until it returns `wait` or `fill`. */
  step(): Step<Block> {
    const { head } = this
    if (this.#rejected !== undefined) {
      const step = this.#replace(this.#rejected.slot)
      if (step !== undefined) return step
    }
    const lowest = this.#lowest()
    if (lowest === undefined) return { kind: 'wait' }
    if (head === undefined) return this.#append(lowest)
    const next = this.#held.values().find((block) => isChildOf(block, head))
    if (next !== undefined) return this.#append(next)
    if (lowest.parentSlot > head.slot) return { kind: 'fill', range: { from: head.slot + 1, to: lowest.parentSlot } }
    // The held block forks off below the head: the stored fork ends at their common parent.
    if (this.#hasParent(lowest)) return this.#rewind(lowest.parentSlot + 1)
    // It forks off before the first block of the tables: none of them is of its chain.
    const [first] = this.#recent
    if (first !== undefined && this.#firstSlot !== undefined && lowest.parentSlot < first.slot)
      return this.#rewind(this.#firstSlot)
    return { kind: 'fill', range: { from: lowest.parentSlot, to: lowest.parentSlot } }
  }

  /** The way to another block in this slot; undefined where a held one only lacks its ancestors. */
  #replace(slot: number): Step<Block> | undefined {
    const fork = this.#held.values().find((block) => block.parentSlot < slot && this.#hasParent(block))
    if (fork !== undefined) return this.#rewind(fork.parentSlot + 1)
    return this.#held.has(slot) ? undefined : { kind: 'fill', range: { from: slot, to: slot } }
  }

  #append(block: Block): Step<Block> {
    this.#held.delete(block.slot)
    if (this.#recent.length === 0) this.#firstSlot = block.parentSlot + 1
    this.#recent.push({ slot: block.slot, blockhash: block.blockhash })
    if (this.#recent.length > RECENT_BLOCKS) {
      this.#recent.shift()
      this.#firstSlot = undefined
    }
    return { kind: 'append', block }
  }

  #rewind(fromSlot: number): Step<Block> {
    let blocks = 0
    for (; (this.head?.slot ?? -1) >= fromSlot; blocks++) this.#recent.pop()
    if ((this.#rejected?.slot ?? -1) >= fromSlot) this.#rejected = undefined
    // With its last block a range ends altogether.
    const isEmpty = this.#recent.length === 0 && this.#firstSlot !== undefined
    return { kind: 'rewind', fromSlot: isEmpty ? Math.min(fromSlot, this.#firstSlot ?? fromSlot) : fromSlot, blocks }
  }

  #release(block: Block): void {
    this.#released.push(block)
  }

  #releaseHeld(slot: number, blockhash?: string): void {
    const block = this.#held.get(slot)
    if (block === undefined || (blockhash !== undefined && block.blockhash !== blockhash)) return
    this.#held.delete(slot)
    this.#release(block)
  }

  #isKnown({ slot, blockhash }: Block): boolean {
    return this.#recent.some((each) => each.slot === slot && each.blockhash === blockhash)
  }

  #hasParent({ parentSlot, parentBlockhash }: Block): boolean {
    return this.#recent.some((each) => each.slot === parentSlot && each.blockhash === parentBlockhash)
  }

  /** Below the head only these are needed: the replacement of a rejected block, and fetched ancestors of a held fork, which have a held child. */
  #isBehind(block: Block): boolean {
    const { head } = this
    if (head === undefined || block.slot > head.slot || block.slot === this.#rejected?.slot) return false
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
