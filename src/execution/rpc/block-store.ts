import type { Hex, Stage } from '../../contract/stream-events.ts'
import { NumberRanges } from '../../core/number-ranges.ts'
import type { BlockContent } from '../source/message.ts'
import { HeldBlock } from './held-block.ts'

/** What consensus decided about a block; nothing before that. */
export type BlockOutcome = 'final' | 'rejected'

/** `blocks.heldMax` where it is not set. */
export const HELD_BLOCKS = 128
/** The same for the simulated chain, whose older blocks are read from disk: each takes some 100 KB. */
export const SIMULATED_HELD_BLOCKS = 32

export type BlockStoreOptions = { readonly blocksMax: number; readonly bytesMax: number }

/** The last executed blocks, abandoned proposals included, bounded in number and bytes. */
export class BlockStore {
  /** The numbers that have a block other than abandoned ones. */
  readonly numbers = new NumberRanges()
  readonly #options: BlockStoreOptions
  readonly #stageOf: (id: Hex) => Stage | undefined
  /** In order of execution. */
  readonly #blocks = new Map<Hex, HeldBlock>()
  readonly #byHash = new Map<Hex, HeldBlock>()
  readonly #byNumber = new Map<number, HeldBlock[]>()
  /** In order of execution: a transaction may be in several proposals. */
  readonly #byTxn = new Map<Hex, HeldBlock[]>()
  /** The outcomes of the blocks held. They are kept here because stages are forgotten earlier than blocks. */
  readonly #outcomes = new Map<Hex, BlockOutcome>()
  /** Sorted by number; recomputed after a change. */
  #inOrder: readonly HeldBlock[] | undefined
  #latest: HeldBlock | undefined
  #bytes = 0
  #added = 0

  constructor(options: BlockStoreOptions, deps: { stageOf: (id: Hex) => Stage | undefined }) {
    this.#options = options
    this.#stageOf = deps.stageOf
  }

  get size(): number {
    return this.#blocks.size
  }

  add(content: BlockContent): HeldBlock {
    const outcome = this.#outcomes.get(content.id) ?? outcomeOf(this.#stageOf(content.id))
    this.#remove(content.id)
    const held = new HeldBlock(content, ++this.#added)
    this.#blocks.set(held.id, held)
    this.#byHash.set(held.hash, held)
    this.#byNumber.set(held.number, [...(this.#byNumber.get(held.number) ?? []), held])
    if (outcome !== undefined) this.#outcomes.set(held.id, outcome)
    this.#updateNumber(held.number)
    for (const txnHash of held.txnHashes) {
      const holders = this.#byTxn.get(txnHash)
      if (holders === undefined) this.#byTxn.set(txnHash, [held])
      else holders.push(held)
    }
    this.#bytes += held.bytes
    this.#latest = held
    this.#inOrder = undefined
    while (this.#blocks.size > 1 && this.#isOver()) this.#remove(this.#blocks.keys().next().value as Hex)
    return held
  }

  /** A block is final, or abandoned. */
  settle(id: Hex, outcome: BlockOutcome): void {
    const held = this.#blocks.get(id)
    if (held === undefined) return
    this.#outcomes.set(id, outcome)
    this.#updateNumber(held.number)
  }

  /** A block is proposed, again if it was rejected: it is abandoned no longer. */
  proposed(id: Hex): void {
    const held = this.#blocks.get(id)
    if (held === undefined || this.isFinal(held)) return
    this.#outcomes.delete(id)
    this.#updateNumber(held.number)
  }

  isFinal({ id }: HeldBlock): boolean {
    return this.#outcomes.get(id) === 'final'
  }

  /** The last executed block; if that was abandoned, the highest other one. */
  get latest(): HeldBlock | undefined {
    const latest = this.#latest
    if (latest === undefined || !this.#isAbandoned(latest)) return latest
    return this.#sorted().findLast((held) => !this.#isAbandoned(held))
  }

  /** The highest block in one of these stages. */
  highest(stages: readonly Stage[]): HeldBlock | undefined {
    return this.#sorted().findLast(({ id }) => stages.includes(this.#stageOf(id) as Stage))
  }

  /** The finalized block of a number, else the newest proposal that is not abandoned. */
  byNumber(number: number): HeldBlock | undefined {
    const held = this.#byNumber.get(number)
    return (
      held?.find((block) => this.isFinal(block)) ?? held?.findLast(({ id }) => this.#outcomes.get(id) !== 'rejected')
    )
  }

  /** By Ethereum hash or by consensus id. */
  byHash(hash: Hex): HeldBlock | undefined {
    return this.#blocks.get(hash) ?? this.#byHash.get(hash)
  }

  /** The block of a transaction: the finalized one where several include it, else the newest one that is not abandoned. */
  byTxn(hash: Hex): { held: HeldBlock; index: number } | undefined {
    const holders = this.#byTxn.get(hash)
    const held =
      holders?.find((block) => this.isFinal(block)) ?? holders?.findLast((block) => !this.#isAbandoned(block))
    return held && { held, index: held.txnHashes.indexOf(hash) }
  }

  /** Rejected, or another block of its number is final. */
  #isAbandoned(held: HeldBlock): boolean {
    const outcome = this.#outcomes.get(held.id)
    if (outcome !== undefined) return outcome === 'rejected'
    return this.#byNumber.get(held.number)?.some((block) => this.isFinal(block)) ?? false
  }

  #updateNumber(number: number): void {
    if (this.byNumber(number) === undefined) this.numbers.remove(number)
    else this.numbers.add(number)
  }

  #sorted(): readonly HeldBlock[] {
    this.#inOrder ??= [...this.#blocks.values()].toSorted((a, b) => a.number - b.number)
    return this.#inOrder
  }

  #isOver(): boolean {
    return this.#blocks.size > this.#options.blocksMax || this.#bytes > this.#options.bytesMax
  }

  #remove(id: Hex): void {
    const held = this.#blocks.get(id)
    if (held === undefined) return
    this.#blocks.delete(id)
    if (this.#byHash.get(held.hash) === held) this.#byHash.delete(held.hash)
    const others = this.#byNumber.get(held.number)?.filter((block) => block !== held) ?? []
    if (others.length > 0) this.#byNumber.set(held.number, others)
    else this.#byNumber.delete(held.number)
    this.#outcomes.delete(id)
    this.#updateNumber(held.number)
    for (const txnHash of held.txnHashes) {
      const holders = this.#byTxn.get(txnHash)?.filter((block) => block !== held) ?? []
      if (holders.length > 0) this.#byTxn.set(txnHash, holders)
      else this.#byTxn.delete(txnHash)
    }
    this.#bytes -= held.bytes
    this.#inOrder = undefined
  }
}

export function outcomeOf(stage: Stage | undefined): BlockOutcome | undefined {
  if (stage === 'Rejected') return 'rejected'
  return stage === 'Finalized' || stage === 'Verified' ? 'final' : undefined
}
