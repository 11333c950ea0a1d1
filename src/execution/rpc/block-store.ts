import type { Hex, Stage } from '../../contract/stream-events.ts'
import { NumberRanges } from '../../core/number-ranges.ts'
import type { BlockContent } from '../source/message.ts'
import { HeldBlock } from './held-block.ts'

export type BlockStoreOptions = { readonly blocksMax: number; readonly bytesMax: number }

/** The last executed blocks, abandoned proposals included, bounded in number and bytes. */
export class BlockStore {
  /** The numbers held. */
  readonly numbers = new NumberRanges()
  readonly #options: BlockStoreOptions
  readonly #stageOf: (id: Hex) => Stage | undefined
  /** In order of execution. */
  readonly #blocks = new Map<Hex, HeldBlock>()
  readonly #byHash = new Map<Hex, HeldBlock>()
  readonly #byNumber = new Map<number, HeldBlock[]>()
  readonly #byTxn = new Map<Hex, HeldBlock>()
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
    this.#remove(content.id)
    const held = new HeldBlock(content, ++this.#added)
    this.#blocks.set(held.id, held)
    this.#byHash.set(held.hash, held)
    this.#byNumber.set(held.number, [...(this.#byNumber.get(held.number) ?? []), held])
    this.numbers.add(held.number)
    for (const txnHash of held.txnHashes) this.#byTxn.set(txnHash, held)
    this.#bytes += held.bytes
    this.#latest = held
    this.#inOrder = undefined
    while (this.#blocks.size > 1 && this.#isOver()) this.#remove(this.#blocks.keys().next().value as Hex)
    return held
  }

  isFinal({ id }: HeldBlock): boolean {
    return isFinal(this.#stageOf(id))
  }

  /** The last executed block. */
  get latest(): HeldBlock | undefined {
    return this.#latest
  }

  /** The highest block in one of these stages. */
  highest(stages: readonly Stage[]): HeldBlock | undefined {
    return this.#sorted().findLast(({ id }) => stages.includes(this.#stageOf(id) as Stage))
  }

  /** The finalized block of a number, else the newest proposal. */
  byNumber(number: number): HeldBlock | undefined {
    const held = this.#byNumber.get(number)
    return held?.find((block) => this.isFinal(block)) ?? held?.at(-1)
  }

  /** By Ethereum hash or by consensus id. */
  byHash(hash: Hex): HeldBlock | undefined {
    return this.#blocks.get(hash) ?? this.#byHash.get(hash)
  }

  /** The block of a transaction; the finalized one where several proposals include it. */
  byTxn(hash: Hex): { held: HeldBlock; index: number } | undefined {
    const newest = this.#byTxn.get(hash)
    if (newest === undefined) return undefined
    const chosen = this.byNumber(newest.number)
    const index = chosen?.txnHashes.indexOf(hash) ?? -1
    return chosen === undefined || index === -1
      ? { held: newest, index: newest.txnHashes.indexOf(hash) }
      : { held: chosen, index }
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
    else {
      this.#byNumber.delete(held.number)
      this.numbers.remove(held.number)
    }
    for (const txnHash of held.txnHashes) if (this.#byTxn.get(txnHash) === held) this.#byTxn.delete(txnHash)
    this.#bytes -= held.bytes
    this.#inOrder = undefined
  }
}

function isFinal(stage: Stage | undefined): boolean {
  return stage === 'Finalized' || stage === 'Verified'
}
