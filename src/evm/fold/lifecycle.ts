import type { Hex } from '../hex.ts'
import {
  type ExecutedBlock,
  type LifecycleChange,
  LifecycleEntry,
  type LifecycleRecord,
  type ProposedBlock,
} from './lifecycle-entry.ts'

export type LifecycleOptions = {
  /** Blocks kept after they were verified or rejected. */
  completedMax: number
  /** Blocks still on their way. A chain has a handful; beyond this the oldest is given up. */
  activeMax: number
}

const LIFECYCLE_DEFAULTS: LifecycleOptions = { completedMax: 128, activeMax: 4096 }

/** Dropped ids remembered for `takeDropped`; far more than one batch of events can cause. */
const DROPPED_MAX = 8192

export type LifecycleStats = {
  /** Events that named a block never seen: normal after a gap or a restart. */
  unknownIds: number
  /** Active blocks given up, because they were too many or because the chain had moved past them. */
  forgotten: number
}

/**
 * Follows every proposed block through its stages. A block is known by its consensus id alone: before finalization several may share
 * a number. Stages never go back; what does not fit is ignored.
 */
export class LifecycleFold {
  readonly stats: LifecycleStats = { unknownIds: 0, forgotten: 0 }
  readonly #options: LifecycleOptions
  /** In order of first sight. */
  readonly #active = new Map<Hex, LifecycleEntry>()
  readonly #completed = new Map<Hex, LifecycleEntry>()
  /** By the ring position of their BLOCK_START, which is how events inside a block name it. */
  readonly #byBlockSeqno = new Map<number, LifecycleEntry>()
  #sights = 0
  #dropped: Hex[] = []

  constructor(options: Partial<LifecycleOptions> = {}) {
    this.#options = { ...LIFECYCLE_DEFAULTS, ...options }
  }

  /** BLOCK_START. A known id is executed again, after a restart of the node: it keeps its stage and its times. */
  proposed(block: ProposedBlock): LifecycleChange[] {
    const known = this.#active.get(block.id) ?? this.#completed.get(block.id)
    const entry = known ?? new LifecycleEntry(block, this.#sights++)
    this.#unbindSeqno(entry)
    entry.started(block.blockSeqno, block.timeNs)
    this.#byBlockSeqno.set(block.blockSeqno, entry)
    if (known !== undefined) return []
    this.#active.set(block.id, entry)
    if (this.#active.size > this.#options.activeMax) this.#forget(this.#active.values().next().value as LifecycleEntry)
    return [entry.change()]
  }

  /** BLOCK_END: what the block used is known now; its stage is the same. */
  executed(block: ExecutedBlock & { blockSeqno: number }): void {
    this.#byBlockSeqno.get(block.blockSeqno)?.executed(block)
  }

  /** BLOCK_QC. Never applied to another proposal of the same number. */
  voted({ id, timeNs }: { id: Hex; timeNs: bigint }): LifecycleChange[] {
    const entry = this.#find(id)
    if (entry?.stage !== 'Proposed') return []
    return [entry.enter('Voted', timeNs)]
  }

  /** BLOCK_FINALIZED: the block first, then its siblings, which no event will ever mention again. */
  finalized({ id, number, timeNs }: { id: Hex; number: number; timeNs: bigint }): LifecycleChange[] {
    const changes: LifecycleChange[] = []
    const entry = this.#find(id)
    if (entry?.stage === 'Proposed' || entry?.stage === 'Voted') changes.push(entry.enter('Finalized', timeNs))
    for (const sibling of [...this.#active.values()]) {
      if (sibling.number === number && sibling.id !== id) changes.push(this.#complete(sibling, 'Rejected', timeNs))
    }
    return changes
  }

  /** BLOCK_VERIFIED names a number, which means the finalized block of that number. */
  verified({ number, timeNs }: { number: number; timeNs: bigint }): LifecycleChange[] {
    const changes: LifecycleChange[] = []
    for (const entry of [...this.#active.values()]) {
      if (entry.number === number && entry.stage === 'Finalized')
        changes.push(this.#complete(entry, 'Verified', timeNs))
      else if (entry.number < number) this.#forget(entry)
    }
    return changes
  }

  /** BLOCK_REJECT, or an EVM_ERROR of the whole block: it is the block named by the event, not the newest one. */
  rejected({ blockSeqno, timeNs }: { blockSeqno: number; timeNs: bigint }): LifecycleChange[] {
    const entry = this.#byBlockSeqno.get(blockSeqno)
    if (entry === undefined) {
      this.stats.unknownIds += 1
      return []
    }
    return this.#active.has(entry.id) ? [this.#complete(entry, 'Rejected', timeNs)] : []
  }

  /** Another ring counts from 1 again: positions of the old one mean nothing there. */
  forgetPositions(): void {
    this.#byBlockSeqno.clear()
  }

  /** The latest change of every active block, by number and then first sight. */
  activeChanges(): LifecycleChange[] {
    return this.#activeByNumber().map((entry) => entry.change())
  }

  /** Completed blocks, oldest first, then active ones by number. */
  records(): LifecycleRecord[] {
    return [...this.#completed.values(), ...this.#activeByNumber()].map((entry) => entry.record())
  }

  /** The finalized block of a number, else the newest proposal. */
  record(number: number): LifecycleRecord | undefined {
    const entries = [...this.#completed.values(), ...this.#active.values()].filter((entry) => entry.number === number)
    const chosen = entries.find((entry) => entry.isFinalized) ?? entries.toSorted((a, b) => a.sight - b.sight).at(-1)
    return chosen?.record()
  }

  /** How many different blocks were ever seen. */
  get sights(): number {
    return this.#sights
  }

  recordOf(id: Hex): LifecycleRecord | undefined {
    return (this.#active.get(id) ?? this.#completed.get(id))?.record()
  }

  /** The block whose BLOCK_START is at this position of the ring. */
  recordAt(blockSeqno: number): LifecycleRecord | undefined {
    return this.#byBlockSeqno.get(blockSeqno)?.record()
  }

  /** Blocks no longer kept since the last call, for whoever holds a copy. */
  takeDropped(): Hex[] {
    return this.#dropped.splice(0)
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

  /** Nobody may be asking: the list of a reader without a copy stays short. */
  #noteDropped(id: Hex): void {
    if (this.#dropped.length >= DROPPED_MAX) this.#dropped.shift()
    this.#dropped.push(id)
  }

  #unbindSeqno(entry: LifecycleEntry): void {
    if (this.#byBlockSeqno.get(entry.blockSeqno) === entry) this.#byBlockSeqno.delete(entry.blockSeqno)
  }
}
