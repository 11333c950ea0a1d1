import { decodeBlockMarker } from '../../solana/shred/block-marker.ts'
import type { DecodedEvent, EngineCounts, EngineStarted, MarkerSet, SlotReport } from './events.ts'
import type { LookupTables } from './lookup-tables.ts'
import { encodeEvent } from './messages.ts'
import type { OutputWriter } from './output-ring.ts'

/**
 * Writes what the engine emits for the readers. A data set that no record can hold is reported as a gap in its place, and the report of its slot
 * counts it as lost. The report of a slot has the parent that a block marker has set.
 */
export class Delivery {
  readonly #output: OutputWriter
  readonly #tables: Pick<LookupTables, 'resolve'>
  /** Of open slots. The engine reports every slot that it opens, and holds a limited number of them. */
  readonly #tooLarge = new Map<number, number>()
  readonly #parents = new Map<number, number>()
  #slots: SlotReport[] = []
  /** Complete slots of the engine that lack a data set here. */
  #slotsIncomplete = 0
  /** Transactions delivered without loaded addresses because a lookup table was not known. */
  unresolved = 0
  /** Data sets larger than a record. */
  dataSetsTooLarge = 0

  constructor(output: OutputWriter, tables: Pick<LookupTables, 'resolve'>) {
    this.#output = output
    this.#tables = tables
  }

  deliver(event: DecodedEvent | EngineStarted): void {
    if (event.kind === 'slot-report') return this.#deliverReport(event)
    if (event.kind === 'marker' && event.isParentUpdate) this.#noteParent(event)
    if (this.#write(event) || event.kind === 'started' || event.kind === 'gap') return
    const { slot, startIndex, endIndex } = event
    this.dataSetsTooLarge += 1
    this.#tooLarge.set(slot, (this.#tooLarge.get(slot) ?? 0) + 1)
    this.#write({ kind: 'gap', slot, startIndex, endIndex, reason: 'too-large', dataSets: 1 })
  }

  /** Reports of slots since the last call. */
  takeSlots(): readonly SlotReport[] {
    const taken = this.#slots
    this.#slots = []
    return taken
  }

  /** The counts of the engine, with what was not delivered. */
  countsOf(counts: EngineCounts): EngineCounts {
    const { complete, incomplete } = counts.slots
    const slots = {
      ...counts.slots,
      complete: complete - this.#slotsIncomplete,
      incomplete: incomplete + this.#slotsIncomplete,
    }
    return { ...counts, slots }
  }

  #deliverReport(report: SlotReport): void {
    const { slot, isComplete } = report
    const tooLarge = this.#tooLarge.get(slot) ?? 0
    this.#tooLarge.delete(slot)
    if (isComplete && tooLarge > 0) this.#slotsIncomplete += 1
    const delivered: SlotReport = {
      ...report,
      parentSlot: this.#parents.get(slot) ?? report.parentSlot,
      dataSets: report.dataSets - tooLarge,
      dataSetsLost: report.dataSetsLost + tooLarge,
      isComplete: isComplete && tooLarge === 0,
    }
    this.#parents.delete(slot)
    this.#write(delivered)
    if (this.#slots.length < SLOT_REPORTS_MAX) this.#slots.push(delivered)
  }

  #noteParent({ slot, bytes }: MarkerSet): void {
    const parentSlot = parentOf(bytes)
    if (parentSlot !== undefined) this.#parents.set(slot, parentSlot)
  }

  #write(event: DecodedEvent | EngineStarted): boolean {
    const parts = encodeEvent(event, (at) => {
      if (event.kind !== 'data-set') throw new TypeError('only a data set has transactions')
      const loaded = this.#tables.resolve(event.transactions[at] as (typeof event.transactions)[number])
      if (!loaded.ok) this.unresolved += 1
      return loaded
    })
    return this.#output.write(parts)
  }
}

/** Reports of slots kept for the next message. */
const SLOT_REPORTS_MAX = 1024

/** The parent that a marker sets; undefined where its form is not known. */
export function parentOf(marker: Uint8Array): number | undefined {
  const decoded = decodeBlockMarker(marker)
  const content = decoded.ok ? decoded.marker.content : undefined
  return content?.variant === 'update-parent' ? content.parentSlot : undefined
}
