import type { DataSet, Gap, MarkerSet } from '../events.ts'
import { type OutputReader, openOutputReader } from '../output-ring.ts'
import { SETTLE_SLOTS, UpstreamCoverage } from './coverage.ts'
import { MergeWindow, type MergeWindowOptions } from './merge-window.ts'
import { decodeRecord, type UpstreamPlace, type UpstreamRecord } from './records.ts'

export type UpstreamMergeDeps = {
  /** The newest slot of the engine. */
  newestSlot(): number | undefined
  /** Delivers a transaction that a node had first. */
  deliver(place: UpstreamPlace, update: Uint8Array, hasUnknownTable: boolean): void
}

/** Since the thread started. */
export type MergeCounts = {
  /** Transactions delivered, by the source that had them first. */
  readonly first: { own: number; upstream: number }
  /** What became of the transactions of nodes. `lost`: they did not reach this thread in time. */
  readonly upstream: { first: number; duplicate: number; late: number; full: number; lost: number }
  /** Data sets that the shreds did not give and a node has delivered. */
  dataSetsFilled: number
}

/** A slot further ahead of all that is known is not believed at once: a wrong number would end the window of all slots before it. */
const SLOTS_AHEAD_MAX = 1000
/** Records read before the shreds have their turn. */
const RECORDS_PER_TURN = 256

/** Merges the streams of nodes into what the engine delivers: the first one wins, and each transaction of a data set comes once. */
export class UpstreamMerge {
  readonly counts: MergeCounts = {
    first: { own: 0, upstream: 0 },
    upstream: { first: 0, duplicate: 0, late: 0, full: 0, lost: 0 },
    dataSetsFilled: 0,
  }
  readonly #records: OutputReader
  readonly #options: MergeWindowOptions
  #window: MergeWindow
  #coverage: UpstreamCoverage
  readonly #deps: UpstreamMergeDeps
  /** The newest slot of a node that was believed. */
  #newest = -1
  /** By source: where its stream was, and what was known then, when it sent a slot that was not believed. */
  readonly #jumps = new Map<number, { readonly slot: number; readonly known: number }>()
  #hasFloor = false

  constructor(memory: SharedArrayBuffer, options: MergeWindowOptions, deps: UpstreamMergeDeps) {
    this.#records = openOutputReader(memory)
    this.#options = options
    this.#window = new MergeWindow(options)
    this.#coverage = new UpstreamCoverage(options.slotsMax)
    this.#deps = deps
  }

  /** Delivers what nodes have sent since the last call. False where more waits. */
  poll(): boolean {
    for (let count = 0; count < RECORDS_PER_TURN; count++) {
      const record = this.#records.next()
      if (record === undefined) return true
      if (record.lost > 0) {
        this.counts.upstream.lost += record.lost
        this.#coverage.broken()
      }
      this.#take(decodeRecord(record.payload))
    }
    return false
  }

  /** For each transaction of a data set of the shreds, whether a node has delivered it. */
  takeOwn(set: DataSet): readonly boolean[] {
    this.#setFirstFloor(set.slot)
    return set.transactions.map(({ signature }) => {
      const isFirst = this.#window.takeOwn(set, signature)
      if (isFirst) this.counts.first.own += 1
      return !isFirst
    })
  }

  /** Nothing of a node is delivered any more that this change of the parent has made void. */
  changeParent({ slot, startIndex }: MarkerSet): void {
    this.#window.setVoidBefore(slot, startIndex)
  }

  /** The shreds are so late that it is not known what nodes have delivered of the slot. */
  isForgotten(slot: number): boolean {
    return this.#window.isForgotten(slot)
  }

  /** Whether a node has delivered what is missing. */
  fills({ slot, startIndex, endIndex, dataSets }: Gap): boolean {
    if (!this.#coverage.covers(slot, startIndex, endIndex)) return false
    this.counts.dataSetsFilled += dataSets
    return true
  }

  /** Transactions of the slot that only nodes have delivered. */
  transactionsOf(slot: number): number {
    return this.#window.nodeOnly(slot)
  }

  takeLeads = () => this.#window.takeLeads()

  /** The shreds are of another chain, and its slots may be lower: what is known of the slots before does not apply. */
  restart(): void {
    this.#window = new MergeWindow(this.#options)
    this.#coverage = new UpstreamCoverage(this.#options.slotsMax)
    this.#newest = -1
    this.#jumps.clear()
    this.#hasFloor = false
  }

  #take(record: UpstreamRecord): void {
    const { source, stream } = record
    if (record.kind === 'ended') return this.#coverage.ended(source)
    // After a restart of this thread the stream was opened before.
    if (!this.#coverage.isOpen(source, stream)) {
      this.#coverage.opened(source, stream, this.#deps.newestSlot() ?? -1)
      this.#jumps.delete(source)
    }
    if (record.kind === 'completed') {
      if (record.slot <= this.#known + SLOTS_AHEAD_MAX) this.#coverage.completed(source, record.slot)
    } else if (record.kind === 'incomplete') this.#coverage.broken(source)
    else if (record.kind === 'transaction') this.#takeTransaction(record)
  }

  #takeTransaction(record: Extract<UpstreamRecord, { kind: 'transaction' }>): void {
    const { source, slot, startIndex, endIndex, arrivalNanos } = record
    const from = this.#believe(source, slot)
    if (from === undefined) {
      this.counts.upstream.late += 1
      return this.#coverage.broken(source)
    }
    this.#newest = Math.max(this.#newest, slot)
    this.#setFirstFloor(from)
    const outcome = this.#window.takeUpstream(record, record.signature)
    // What is void came after the change of the parent.
    this.counts.upstream[outcome === 'void' ? 'late' : outcome] += 1
    if (outcome === 'first') {
      this.counts.first.upstream += 1
      this.#deps.deliver({ slot, startIndex, endIndex, arrivalNanos }, record.update, record.hasUnknownTable)
    }
    // What was not taken was not delivered.
    if (outcome === 'late' || outcome === 'full') this.#coverage.broken(source)
    else this.#coverage.delivered(source, slot, startIndex, endIndex)
  }

  /** The newest slot of the shreds or of a node; -1 before the first one. */
  get #known(): number {
    return Math.max(this.#deps.newestSlot() ?? -1, this.#newest)
  }

  /**
   * From which slot on the stream is believed, which has come to this slot; undefined where it is not. The first slot of all, and one far ahead of all
   * that is known, may be wrong: it is believed when the stream goes on from there while neither the shreds nor another node do.
   */
  #believe(source: number, slot: number): number | undefined {
    const known = this.#known
    const jump = this.#jumps.get(source)
    if (known >= 0 && slot <= known + SLOTS_AHEAD_MAX) {
      this.#jumps.delete(source)
      return slot
    }
    if (jump?.known === known && slot >= jump.slot && slot <= jump.slot + SLOTS_AHEAD_MAX)
      return slot >= jump.slot + SETTLE_SLOTS ? jump.slot : undefined
    this.#jumps.set(source, { slot, known })
    return undefined
  }

  /** What an earlier thread has delivered of the slots that are open now is not known. */
  #setFirstFloor(slot: number): void {
    if (this.#hasFloor) return
    this.#hasFloor = true
    this.#window.setFloor(slot + SETTLE_SLOTS)
  }
}
