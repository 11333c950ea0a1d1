import type { Hex, Stage } from '../../contract/stream-events.ts'
import { highestRanges, type NumberRange } from '../../core/number-ranges.ts'
import type { WaitingWork } from '../../core/work.ts'
import { UNIT } from '../api/work-budget.ts'
import type { BlockArchive } from '../archive/archive.ts'
import type { ArchivedEntry } from '../archive/archive-index.ts'
import type { BlockContent } from '../source/message.ts'
import type { BlockOutcome, BlockStore } from './block-store.ts'
import type { CallMeter } from './call-meter.ts'
import { RpcFailure } from './failure.ts'
import type { HeldBlock } from './held-block.ts'

/** A block that can be read: in memory, or on disk and loaded when its events are needed. */
export type BlockHandle = {
  readonly number: number
  readonly id: Hex
  /** The Ethereum hash. */
  readonly hash: Hex
  readonly bloom: Uint8Array | undefined
  readonly txnCount: number
  /** Throws an RpcFailure when it cannot be read from disk any more. */
  load(meter: CallMeter): WaitingWork<HeldBlock>
}

export type FoundTxn = { readonly held: HeldBlock; readonly index: number }

/** Gaps are few: where the service did not run, or events of the source were lost. */
const RANGES_MAX = 16

/** All blocks that JSON-RPC reads: those in memory first, then those on disk. */
export class Blocks {
  readonly #memory: BlockStore
  readonly #archive: BlockArchive | undefined

  constructor(memory: BlockStore, archive?: BlockArchive) {
    this.#memory = memory
    this.#archive = archive
  }

  add(content: BlockContent): HeldBlock {
    const held = this.#memory.add(content)
    this.#archive?.add(content, held)
    return held
  }

  /** A block is final, or abandoned: then it is served by its hash only. */
  settle(id: Hex, outcome: BlockOutcome): void {
    this.#memory.settle(id, outcome)
    this.#archive?.settle(id, outcome)
  }

  /** A block is proposed. One that was rejected before is served again; on disk it stays as it was until it is final. */
  proposed(id: Hex): void {
    this.#memory.proposed(id)
  }

  /** The numbers held, as ranges without gaps, oldest first; of many only the newest. */
  get ranges(): readonly NumberRange[] {
    const { numbers } = this.#memory
    return highestRanges(this.#archive === undefined ? [numbers] : [numbers, this.#archive.numbers], RANGES_MAX)
  }

  /** Lowest and highest number held. */
  get range(): NumberRange | undefined {
    const held = [this.#memory.numbers, this.#archive?.numbers].filter((numbers) => numbers !== undefined)
    const ends = held.flatMap((numbers) => [numbers.at(0)?.from ?? [], numbers.at(-1)?.to ?? []].flat())
    return ends.length === 0 ? undefined : { from: Math.min(...ends), to: Math.max(...ends) }
  }

  /** The number of the last executed block. */
  get latestNumber(): number | undefined {
    return this.#memory.latest?.number ?? this.#archive?.range?.to
  }

  get latest(): BlockHandle | undefined {
    const { latest } = this.#memory
    if (latest !== undefined) return inMemory(latest)
    return this.#archived(this.#archive?.byNumber(this.#archive.range?.to ?? -1))
  }

  get earliest(): BlockHandle | undefined {
    const { range } = this
    return range && this.byNumber(range.from)
  }

  /** The highest block in one of these stages. Blocks on disk are known to be final or not. */
  highest(stages: readonly Stage[]): BlockHandle | undefined {
    const held = this.#memory.highest(stages)
    return held === undefined ? this.#archived(this.#archive?.highestFinal()) : inMemory(held)
  }

  /** The finalized block of a number, else the newest proposal that is not abandoned. */
  byNumber(number: number): BlockHandle | undefined {
    const held = this.#memory.byNumber(number)
    if (held === undefined || this.#isReplacedOnDisk(held)) return this.#archived(this.#archive?.byNumber(number))
    return inMemory(held)
  }

  /** By Ethereum hash or by consensus id. */
  byHash(hash: Hex): BlockHandle | undefined {
    const held = this.#memory.byHash(hash)
    return held === undefined ? this.#archived(this.#archive?.byHash(hash)) : inMemory(held)
  }

  /** A transaction and its block; the finalized one where several proposals include it, never an abandoned one. */
  *byTxn(hash: Hex, meter: CallMeter): WaitingWork<FoundTxn | undefined> {
    const found = this.#memory.byTxn(hash)
    if (found !== undefined && !this.#isReplacedOnDisk(found.held)) return found
    for (const entry of this.#archive === undefined ? [] : yield* this.#archive.byTxn(hash)) {
      if (this.#isReplacedInMemory(entry)) continue
      const held = yield* this.#load(entry, meter)
      const index = held.txnHashes.indexOf(hash)
      if (index !== -1) return { held, index }
    }
    return undefined
  }

  /** Another block of its number is final. After a restart memory may have only an abandoned proposal. */
  #isReplacedOnDisk(held: HeldBlock): boolean {
    const entry = this.#archive?.byNumber(held.number)
    return entry?.outcome === 'final' && entry.facts.id !== held.id && !this.#memory.isFinal(held)
  }

  #isReplacedInMemory({ facts, outcome }: ArchivedEntry): boolean {
    const held = this.#memory.byNumber(facts.number)
    return held !== undefined && held.id !== facts.id && this.#memory.isFinal(held) && outcome !== 'final'
  }

  #archived(entry: ArchivedEntry | undefined): BlockHandle | undefined {
    if (entry === undefined) return undefined
    const { number, id, hash, bloom, txnCount } = entry.facts
    return { number, id, hash, bloom, txnCount, load: (meter) => this.#load(entry, meter) }
  }

  *#load(entry: ArchivedEntry, meter: CallMeter): WaitingWork<HeldBlock> {
    const held = yield* (this.#archive as BlockArchive).load(entry)
    // Null would mean that there is no such block.
    if (held === undefined)
      throw new RpcFailure('blocks-not-held', `block ${entry.facts.number} cannot be read from disk`)
    meter.charge(held.bytes / UNIT.readyBytes)
    return held
  }
}

function inMemory(held: HeldBlock): BlockHandle {
  const { number, id, hash, bloom, txnHashes } = held
  return {
    number,
    id,
    hash,
    bloom,
    txnCount: txnHashes.length,
    *load() {
      // Nothing to wait for. Other work may run.
      yield
      return held
    },
  }
}
