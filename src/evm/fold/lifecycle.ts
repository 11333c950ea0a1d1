import type { Hex } from '../hex.ts'
import {
  type ExecutedBlock,
  type LifecycleChange,
  LifecycleEntry,
  type LifecycleRecord,
  type ProposedBlock,
} from './lifecycle-entry.ts'

export type LifecycleOptions = {
  /** Blocks kept after they are verified or rejected. */
  completedMax: number
  /** Blocks that are not completed. A chain has a handful; above this number the oldest is dropped. */
  activeMax: number
}

const LIFECYCLE_DEFAULTS: LifecycleOptions = { completedMax: 128, activeMax: 4096 }

/** Maximum number of ids held for `takeDropped`; more than one event can drop: all active blocks of a ring that is followed. */
const DROPPED_MAX = 16_384

export type LifecycleStats = {
  /** Events about a block that was never seen: normal after a gap or a restart. */
  unknownIds: number
  /** Active blocks dropped because there were too many or because the chain has moved past them. */
  forgotten: number
}

/**
 * Tracks every proposed block through its stages. A block is identified by its consensus id: before finalization several may share a
 * number. Stages never go back, except of a rejected block that is executed again; an event that does not fit the stage is ignored.
 */
export class LifecycleFold {
  readonly stats: LifecycleStats = { unknownIds: 0, forgotten: 0 }
  readonly #options: LifecycleOptions
  /** In order of first appearance. */
  readonly #active = new Map<Hex, LifecycleEntry>()
  readonly #completed = new Map<Hex, LifecycleEntry>()
  /** By the sequence number of their BLOCK_START, by which events of a block refer to it. */
  readonly #byBlockSeqno = new Map<number, LifecycleEntry>()
  #seen = 0
  #dropped: Hex[] = []

  constructor(options: Partial<LifecycleOptions> = {}) {
    this.#options = { ...LIFECYCLE_DEFAULTS, ...options }
  }

  /**
   * BLOCK_START. A known id is executed again after a restart of the node: it keeps its stage and its times. One that was rejected begins
   * again, since the error may have been that of the node, unless another block of its number is finalized.
   */
  proposed(block: ProposedBlock): LifecycleChange[] {
    const known = this.#active.get(block.id) ?? this.#completed.get(block.id)
    if (known !== undefined) this.#unbindSeqno(known)
    const isAgain = known?.stage === 'Rejected' && !this.#ofNumber(known.number).some((entry) => entry.isFinalized)
    const entry = known === undefined || isAgain ? new LifecycleEntry(block, known?.ordinal ?? this.#seen++) : known
    entry.started(block.blockSeqno, block.timeNs)
    this.#byBlockSeqno.set(block.blockSeqno, entry)
    if (entry === known) return []
    this.#completed.delete(block.id)
    this.#active.set(block.id, entry)
    if (this.#active.size > this.#options.activeMax) this.#forget(this.#active.values().next().value as LifecycleEntry)
    return [entry.change()]
  }

  /** BLOCK_END: the gas used is known; the stage does not change. */
  executed(block: ExecutedBlock & { blockSeqno: number }): void {
    this.#byBlockSeqno.get(block.blockSeqno)?.executed(block)
  }

  /** BLOCK_QC. Never applied to another proposal of the same number. */
  voted({ id, timeNs }: { id: Hex; timeNs: bigint }): LifecycleChange[] {
    const entry = this.#find(id)
    if (entry?.stage !== 'Proposed') return []
    return [entry.enter('Voted', timeNs)]
  }

  /** BLOCK_FINALIZED: finalizes the block, then rejects its siblings, for which no further event comes. */
  finalized({ id, number, timeNs }: { id: Hex; number: number; timeNs: bigint }): LifecycleChange[] {
    const changes: LifecycleChange[] = []
    const entry = this.#find(id)
    if (entry?.stage === 'Proposed' || entry?.stage === 'Voted') changes.push(entry.enter('Finalized', timeNs))
    for (const sibling of [...this.#active.values()]) {
      if (sibling.number === number && sibling.id !== id) changes.push(this.#complete(sibling, 'Rejected', timeNs))
    }
    return changes
  }

  /** BLOCK_VERIFIED has a number only: it refers to the finalized block of that number. */
  verified({ number, timeNs }: { number: number; timeNs: bigint }): LifecycleChange[] {
    const changes: LifecycleChange[] = []
    for (const entry of [...this.#active.values()]) {
      if (entry.number === number && entry.stage === 'Finalized')
        changes.push(this.#complete(entry, 'Verified', timeNs))
      else if (entry.number < number) this.#forget(entry)
    }
    return changes
  }

  /** BLOCK_REJECT, or an EVM_ERROR outside a transaction: rejects the block of the event, not the newest one. */
  rejected({ blockSeqno, timeNs }: { blockSeqno: number; timeNs: bigint }): LifecycleChange[] {
    const entry = this.#byBlockSeqno.get(blockSeqno)
    if (entry === undefined) {
      this.stats.unknownIds += 1
      return []
    }
    return this.#active.has(entry.id) ? [this.#complete(entry, 'Rejected', timeNs)] : []
  }

  /** A new ring numbers its events from 1 again, so the sequence numbers of the old one are invalid. */
  forgetSeqnos(): void {
    this.#byBlockSeqno.clear()
  }

  /** The latest change of every active block, by number and then first appearance. */
  activeChanges(): LifecycleChange[] {
    return this.#activeByNumber().map((entry) => entry.change())
  }

  /** Completed blocks, oldest first, then active ones by number. */
  records(): LifecycleRecord[] {
    return [...this.#completed.values(), ...this.#activeByNumber()].map((entry) => entry.record())
  }

  /** The finalized block of a number, else the newest proposal. */
  record(number: number): LifecycleRecord | undefined {
    const entries = this.#ofNumber(number)
    const chosen =
      entries.find((entry) => entry.isFinalized) ?? entries.toSorted((a, b) => a.ordinal - b.ordinal).at(-1)
    return chosen?.record()
  }

  /** Number of distinct blocks seen. */
  get seen(): number {
    return this.#seen
  }

  recordOf(id: Hex): LifecycleRecord | undefined {
    return (this.#active.get(id) ?? this.#completed.get(id))?.record()
  }

  /** The block whose BLOCK_START has this sequence number. */
  recordAt(blockSeqno: number): LifecycleRecord | undefined {
    return this.#byBlockSeqno.get(blockSeqno)?.record()
  }

  /** Blocks dropped since the last call, for callers that hold a copy. */
  takeDropped(): Hex[] {
    return this.#dropped.splice(0)
  }

  #ofNumber(number: number): LifecycleEntry[] {
    return [...this.#completed.values(), ...this.#active.values()].filter((entry) => entry.number === number)
  }

  #activeByNumber(): LifecycleEntry[] {
    return [...this.#active.values()].toSorted((a, b) => a.number - b.number)
  }

  #find(id: Hex): LifecycleEntry | undefined {
    const entry = this.#active.get(id)
    if (entry === undefined && !this.#completed.has(id)) this.stats.unknownIds += 1
    return entry
  }

  #complete(entry: LifecycleEntry, stage: 'Verified' | 'Rejected', timeNs: bigint): LifecycleChange {
    this.#active.delete(entry.id)
    this.#completed.set(entry.id, entry)
    if (this.#completed.size > this.#options.completedMax) {
      const oldest = this.#completed.values().next().value as LifecycleEntry
      this.#completed.delete(oldest.id)
      this.#unbindSeqno(oldest)
      this.#noteDropped(oldest.id)
    }
    return entry.enter(stage, timeNs)
  }

  #forget(entry: LifecycleEntry): void {
    this.#active.delete(entry.id)
    this.#unbindSeqno(entry)
    this.#noteDropped(entry.id)
    this.stats.forgotten += 1
  }

  /** Bounded, because not every caller reads the list. */
  #noteDropped(id: Hex): void {
    if (this.#dropped.length >= DROPPED_MAX) this.#dropped.shift()
    this.#dropped.push(id)
  }

  #unbindSeqno(entry: LifecycleEntry): void {
    if (this.#byBlockSeqno.get(entry.blockSeqno) === entry) this.#byBlockSeqno.delete(entry.blockSeqno)
  }
}
