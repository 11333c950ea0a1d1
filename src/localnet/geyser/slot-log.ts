import type { BankId, Block, ChainEvent, Commitment } from '../chain/model.ts'
import { encodeCreatedAt } from './scratch.ts'
import { createSlotContent, type SlotContent } from './slot-content.ts'
import { type SlotStage, SlotUpdate } from './slot-update.ts'
import type { Update } from './updates.ts'

export type SlotLogOptions = {
  /** The log keeps the records of the time in which this many slots were frozen. */
  readonly slotsMax: number
}

export type SlotLogDeps = {
  readonly nowMs: () => number
  /** Reads a block with its writes; undefined if they are gone. */
  readonly block: (slot: number) => Block | undefined
}

/** This many recent blocks keep their encoded updates, shared by all streams; older ones are encoded again on demand. */
const ENCODED_SLOTS = 4

/** One chain event with the updates that streams receive for it. */
type SlotRecord = {
  readonly kind: ChainEvent['kind']
  readonly slot: number
  readonly bankId: BankId
  /** The block of a candidate bank, which the ledger does not have. */
  readonly candidate: Block | undefined
  /** The newest frozen slot at the time of the event. */
  readonly headSlot: number
  readonly createdAtMs: number
  /** Sent to every stream, before and after the content. */
  readonly before: readonly Update[]
  readonly after: readonly Update[]
  /** The commitment whose streams receive the block's content with this event; undefined for none. */
  readonly contentFor: Commitment | undefined
  content: SlotContent | undefined
}

/**
 * Chain events in the order streams receive them, as far back as a stream may lag or replay. A position in the log is a
 * number that grows by one per record; every stream has its own.
 */
export class SlotLog {
  readonly #options: SlotLogOptions
  readonly #deps: SlotLogDeps
  #records: SlotRecord[] = []
  /** Position of the first record still held. */
  #first = 0
  /** Position of the first record that may still hold encoded content. */
  #encodedFrom = 0
  #headSlot = -1
  #openedSlot = -1

  constructor(options: SlotLogOptions, deps: SlotLogDeps) {
    this.#options = options
    this.#deps = deps
  }

  get first(): number {
    return this.#first
  }

  /** The position after the newest record. */
  get end(): number {
    return this.#first + this.#records.length
  }

  /** The oldest slot with all of its records. */
  firstSlot(): number | undefined {
    return this.#records.find(isOpening)?.slot
  }

  /** The position of the first record of this slot; the end for a slot that is not open yet. */
  positionOf(slot: number): number {
    const index = this.#records.findIndex((record) => isOpening(record) && record.slot >= slot)
    return index < 0 ? this.end : this.#first + index
  }

  slotAt(position: number): number {
    return this.#at(position).slot
  }

  /** The number of slots frozen since this record; the record is dropped at `slotsMax`. */
  ageOf(position: number): number {
    return position < this.end ? this.#headSlot - this.#at(position).headSlot : 0
  }

  /**
   * The updates of one record for streams of this commitment. Undefined when the writes of the block are gone: the
   * stream is too far behind.
   */
  updatesAt(position: number, commitment: Commitment): readonly Update[] | undefined {
    const record = this.#at(position)
    const { before, after, contentFor } = record
    if (contentFor !== commitment) return before.length === 0 ? after : [...before, ...after]
    const content = record.content ?? this.#content(record, position)
    if (!content) return undefined
    return [...(commitment === 'processed' ? content.live : content.settled), ...before, ...content.summary, ...after]
  }

  append(event: ChainEvent): void {
    const createdAtMs = this.#deps.nowMs()
    const createdAt = encodeCreatedAt(createdAtMs)
    const { kind, bankId } = event
    const { slot, parentSlot } = 'block' in event ? event.block : event
    const report = (...stages: readonly SlotStage[]) =>
      stages.map((stage) => new SlotUpdate({ slot, parentSlot, bankId }, stage, createdAt))
    if (kind === 'frozen') this.#headSlot = slot
    const isFirstBank = kind === 'opened' && this.#openedSlot < slot
    if (isFirstBank) this.#openedSlot = slot
    this.#records.push({
      kind,
      slot,
      bankId,
      candidate: kind === 'candidate' ? event.block : undefined,
      headSlot: this.#headSlot,
      createdAtMs,
      before: report(...STAGES_BEFORE[kind]),
      after: [...(isFirstBank ? report('firstShredReceived') : []), ...report(STAGE[kind])],
      contentFor: CONTENT_FOR[kind],
      content: undefined,
    })
    this.#forget()
  }

  #forget(): void {
    const oldest = this.#headSlot - this.#options.slotsMax
    let gone = 0
    while (gone < this.#records.length && (this.#records[gone] as SlotRecord).headSlot < oldest) gone++
    if (gone > 0) {
      this.#records.splice(0, gone)
      this.#first += gone
    }
    this.#encodedFrom = Math.max(this.#encodedFrom, this.#first)
    while (this.#encodedFrom < this.end && this.#at(this.#encodedFrom).headSlot <= this.#headSlot - ENCODED_SLOTS) {
      this.#at(this.#encodedFrom++).content = undefined
    }
  }

  #content(record: SlotRecord, position: number): SlotContent | undefined {
    const isRecent = position >= this.#encodedFrom
    // A block that is frozen and confirmed within a few slots is encoded once for both.
    const { slot, bankId } = record
    const shared = this.#records.find((one) => one.slot === slot && one.bankId === bankId && one.content)?.content
    const block = shared ? undefined : (record.candidate ?? this.#deps.block(slot))
    const content = shared ?? (block && createSlotContent(block, record.createdAtMs, bankId))
    if (isRecent) record.content = content
    return content
  }

  #at(position: number): SlotRecord {
    const record = this.#records[position - this.#first]
    if (!record) throw new RangeError(`no record at ${position}`)
    return record
  }
}

/** The status that a slot, or one of its banks, has with the event. */
const STAGE = {
  opened: 'createdBank',
  frozen: 'processed',
  candidate: 'processed',
  dead: 'dead',
  confirmed: 'confirmed',
  finalized: 'finalized',
} as const satisfies Record<ChainEvent['kind'], SlotStage>

const STAGES_BEFORE: Record<ChainEvent['kind'], readonly SlotStage[]> = {
  opened: [],
  frozen: ['completed'],
  candidate: ['completed'],
  dead: [],
  confirmed: [],
  finalized: [],
}

const CONTENT_FOR: Record<ChainEvent['kind'], Commitment | undefined> = {
  opened: undefined,
  frozen: 'processed',
  candidate: 'processed',
  dead: undefined,
  confirmed: 'confirmed',
  finalized: 'finalized',
}

function isOpening(record: SlotRecord): boolean {
  return record.kind === 'opened'
}
