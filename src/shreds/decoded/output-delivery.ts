import { ACCOUNT_INDEXES } from '../../solana/transaction/types.ts'
import type {
  DataSet,
  DecodedEvent,
  EngineCounts,
  EngineStarted,
  Gap,
  MarkerSet,
  SlotCompleted,
  SlotReport,
} from './events.ts'
import type { LoadedAddresses, LookupTables } from './lookup-tables.ts'
import { dataSetLength, encodeEvent, encodeUpstreamDelivery } from './messages.ts'
import type { UpstreamMerge } from './node-streams/merge.ts'
import type { UpstreamPlace } from './node-streams/records.ts'
import { readUpstreamTransaction } from './node-streams/transaction.ts'
import type { OutputWriter } from './output-ring.ts'

/**
 * Data sets of a slot that were decoded and not delivered, by their first shred, and their transactions; `markers` of them are markers, which are no
 * data sets of the report.
 */
type LostSets = { readonly starts: Set<number>; markers: number; transactions: number }
const NONE_LOST: LostSets = { starts: new Set(), markers: 0, transactions: 0 }

/**
 * Writes what the engine emits for the readers. A data set that no record can hold is reported as a gap in its place, and the report of its slot
 * counts it as lost. Where the streams of nodes are merged, what they have delivered is marked, and a gap that they have filled is no loss.
 */
export class OutputDelivery {
  readonly #output: OutputWriter
  readonly #tables: Pick<LookupTables, 'resolve'>
  /** Lost sets of open slots. The engine reports every slot that it opens, and holds a limited number of them. */
  readonly #lost = new Map<number, LostSets>()
  readonly #filled = new Map<number, number>()
  /** Announced as complete. */
  readonly #completed = new Set<number>()
  #slots: SlotReport[] = []
  /** Slots that are complete for the engine and not here, less those that are complete here alone. */
  #slotsIncomplete = 0
  #slotsMissingFilled = 0
  /** Transactions delivered without loaded addresses because a lookup table was not known. */
  unresolved = 0
  /** Data sets larger than a record. */
  dataSetsTooLarge = 0

  /** Set where the streams of nodes are merged. */
  merge: Pick<UpstreamMerge, 'takeOwn' | 'changeParent' | 'isForgotten' | 'fills' | 'transactionsOf'> | undefined

  constructor(output: OutputWriter, tables: Pick<LookupTables, 'resolve'>) {
    this.#output = output
    this.#tables = tables
  }

  deliver(event: DecodedEvent | EngineStarted): void {
    if (event.kind === 'slot-report') return this.#deliverReport(event)
    if (event.kind === 'slot-completed') return this.#deliverCompleted(event)
    if (event.kind === 'marker' && event.isParentUpdate) this.merge?.changeParent(event)
    if (event.kind === 'gap' && event.firstSlot === undefined && this.merge?.fills(event) === true)
      return this.#noteFilled(event)
    if (event.kind === 'data-set' && this.merge?.isForgotten(event.slot) === true) {
      // The parts of a large one are one data set.
      if (event.part === undefined || event.part.isLast) this.#lose(event, 'too-late')
      else this.#lostOf(event.slot).transactions += event.transactions.length
      return
    }
    if (this.#write(event) || event.kind === 'started' || event.kind === 'gap') return
    if (this.#lose(event, 'too-large')) this.dataSetsTooLarge += 1
  }

  /** Delivers a transaction that a node had first. Addresses that the node could not load come from the tables that are known here. */
  deliverUpstream(place: UpstreamPlace, update: Uint8Array, hasUnknownTable: boolean): void {
    const loaded = hasUnknownTable ? this.#loadFor(update) : undefined
    if (hasUnknownTable && loaded === undefined) this.unresolved += 1
    this.#output.write(encodeUpstreamDelivery(place, update, loaded))
  }

  /** Reports of slots since the last call. */
  takeSlots(): readonly SlotReport[] {
    const taken = this.#slots
    this.#slots = []
    return taken
  }

  /** The counts of the engine, with what was not delivered. */
  countsOf(counts: EngineCounts): EngineCounts {
    const { complete, incomplete, missing } = counts.slots
    const slots = {
      ...counts.slots,
      complete: complete - this.#slotsIncomplete,
      incomplete: incomplete + this.#slotsIncomplete,
      missing: missing - this.#slotsMissingFilled,
    }
    return { ...counts, slots }
  }

  /** A slot is announced as complete once, and not if a data set of it was lost here. */
  #deliverCompleted(completed: SlotCompleted): void {
    const { slot } = completed
    if (this.#lost.has(slot)) return
    this.#completed.add(slot)
    this.#write(completed)
  }

  #deliverReport(report: SlotReport): void {
    const { slot, isComplete } = report
    const lost = this.#lost.get(slot) ?? NONE_LOST
    const filled = this.#filled.get(slot) ?? 0
    const dataSetsLost = report.dataSetsLost + lost.starts.size - filled
    const delivered: SlotReport = {
      ...report,
      transactions: report.transactions - lost.transactions + (this.merge?.transactionsOf(slot) ?? 0),
      dataSets: report.dataSets - (lost.starts.size - lost.markers),
      dataSetsLost,
      ...(filled === 0 ? {} : { dataSetsFromUpstream: filled }),
      isComplete: dataSetsLost === 0,
    }
    this.#slotsIncomplete += Number(isComplete) - Number(delivered.isComplete)
    // For the engine it is incomplete: nodes have filled its gaps.
    if (delivered.isComplete && !this.#completed.has(slot))
      this.#deliverCompleted({ ...delivered, kind: 'slot-completed' })
    for (const bySlot of [this.#lost, this.#filled, this.#completed]) bySlot.delete(slot)
    this.#write(delivered)
    if (this.#slots.length < SLOT_REPORTS_MAX) this.#slots.push(delivered)
  }

  /** Shreds of a slot were lost, and a node has delivered what they contain. */
  #noteFilled({ slot, dataSets, reason }: Gap): void {
    // Such slots have no report.
    if (reason === 'slot-missing') this.#slotsMissingFilled += 1
    else if (reason !== 'slot-unknown') this.#filled.set(slot, (this.#filled.get(slot) ?? 0) + dataSets)
  }

  /** False for a further part of a data set that is lost already. */
  #lose(set: DataSet | MarkerSet, reason: 'too-large' | 'too-late'): boolean {
    const { slot, startIndex, endIndex } = set
    const lost = this.#lostOf(slot)
    const isNew = !lost.starts.has(startIndex)
    lost.starts.add(startIndex)
    if (set.kind === 'marker') lost.markers += 1
    else lost.transactions += set.transactions.length
    // Every lost part is reported, because those around it cannot be joined.
    this.#write({ kind: 'gap', slot, startIndex, endIndex, reason, dataSets: isNew ? 1 : 0 })
    return isNew
  }

  #lostOf(slot: number): LostSets {
    let lost = this.#lost.get(slot)
    if (lost === undefined) {
      lost = { starts: new Set(), markers: 0, transactions: 0 }
      this.#lost.set(slot, lost)
    }
    return lost
  }

  #write(event: DecodedEvent | EngineStarted): boolean {
    if (event.kind === 'data-set') return this.#writeDataSet(event)
    return this.#output.write(encodeEvent(event, () => NO_TABLES))
  }

  #writeDataSet(set: DataSet): boolean {
    const loaded = set.transactions.map((transaction) => this.#tables.resolve(transaction))
    // Before they are taken: what is not delivered here is still taken from a node.
    if (!this.#output.fits(dataSetLength(set, loaded))) return false
    const wasDelivered = this.merge?.takeOwn(set)
    for (const [at, { ok }] of loaded.entries()) if (!ok && wasDelivered?.[at] !== true) this.unresolved += 1
    return this.#output.write(encodeEvent(set, (at) => loaded[at] as LoadedAddresses, wasDelivered))
  }

  /** Undefined where a table is not known. */
  #loadFor(update: Uint8Array): Extract<LoadedAddresses, { ok: true }> | undefined {
    const parsed = readUpstreamTransaction(update)?.parsed
    const loaded = parsed && this.#tables.resolve(parsed)
    if (parsed === undefined || loaded?.ok !== true) return undefined
    const { writable, readonly } = loaded
    // The message of a node can have more indexes than a transaction.
    return parsed.staticKeys.length + writable.length + readonly.length > ACCOUNT_INDEXES ? undefined : loaded
  }
}

const NO_TABLES: LoadedAddresses = { ok: true, writable: [], readonly: [] }

/** Reports of slots kept for the next message. */
const SLOT_REPORTS_MAX = 1024
