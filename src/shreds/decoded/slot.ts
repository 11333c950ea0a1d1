import { FEC_SET_DATA_SHREDS } from '../../solana/shred/shred.ts'
import type { ClosedBy, Gap, GapReason, SlotReport } from './events.ts'
import { ENDING, type FecSet } from './fec-set.ts'

/** What is known of the indexes of one FEC set. */
const OUTCOME = { open: 0, delivered: 1, undecodable: 2 } as const

/** Slots of an outage that are gaps of their own: as many as can be compared with the streams of nodes. Those before are one gap. */
const UNKNOWN_SLOTS_MAX = 128

/** Second and further versions of FEC sets in one slot. */
const CONFLICTING_VERSIONS_MAX = 64

/** What the report of a slot counts. */
function newSlotCounts() {
  return { transactions: 0, dataSets: 0, markers: 0, parentUpdates: 0, fecSetsRecovered: 0, shreds: 0, duplicates: 0 }
}

/** An open slot. Objects are reused. */
export class OpenSlot {
  slot = 0
  /** By number of the set: its first version. */
  readonly sets: (FecSet | undefined)[]
  readonly #outcomes: Uint8Array
  /** FEC sets from 0 up to the last one of which anything is known. */
  setCount = 0
  counts: ReturnType<typeof newSlotCounts> = newSlotCounts()
  /** Large data sets that are being decoded. */
  pending = 0
  firstShredNanos = 0
  lastShredNanos = 0
  /** FEC sets of the slot, once LAST_IN_SLOT is known. */
  #lastSetCount: number | undefined
  #parentOffset = -1
  /** As the last change of the parent has set it. */
  #changedParent: number | undefined
  #versionsConflicting = 0
  #isConflicting = false
  #isParentConflicting = false
  /** FEC sets whose data sets were delivered, or are void. */
  #delivered = 0
  #wasCompleteTaken = false
  /** The FEC set in which the leader last changed the parent of the block: what it sent before is void. */
  #voidBelow = 0

  constructor(setsMax: number) {
    this.sets = Array.from({ length: setsMax }, () => undefined)
    this.#outcomes = new Uint8Array(setsMax)
  }

  begin(slot: number, arrivalNanos: number): void {
    this.slot = slot
    this.sets.fill(undefined, 0, this.setCount)
    this.#outcomes.fill(OUTCOME.open, 0, this.setCount)
    this.setCount = 0
    this.counts = newSlotCounts()
    this.pending = 0
    this.firstShredNanos = arrivalNanos
    this.lastShredNanos = arrivalNanos
    this.#voidBelow = 0
    this.#lastSetCount = undefined
    this.#parentOffset = -1
    this.#versionsConflicting = 0
    this.#isConflicting = false
    this.#isParentConflicting = false
    this.#delivered = 0
    this.#wasCompleteTaken = false
  }

  /** As the data shreds name it, or as a marker has set it; undefined while it is not known, or where the form of the marker is not. */
  get parentSlot(): number | undefined {
    if (this.counts.parentUpdates > 0) return this.#changedParent
    return this.#parentOffset === -1 ? undefined : this.slot - this.#parentOffset
  }

  /** Notes that a FEC set has another version. False when the slot has too many of them. */
  addVersion(): boolean {
    this.#isConflicting = true
    if (this.#versionsConflicting >= CONFLICTING_VERSIONS_MAX) return false
    this.#versionsConflicting += 1
    return true
  }

  add(set: FecSet): void {
    set.other = this.sets[set.index]
    this.sets[set.index] = set
    this.setCount = Math.max(this.setCount, set.index + 1)
  }

  /** Whether none of the FEC sets [from, to) was delivered, in any version. */
  isOpen(from: number, to: number): boolean {
    for (let i = from; i < to; i++) if (this.#outcomes[i] === OUTCOME.delivered) return false
    return true
  }

  setDelivered(from: number, to: number): void {
    for (let i = from; i < to; i++) if (this.#outcomes[i] !== OUTCOME.delivered) this.#delivered += 1
    this.#outcomes.fill(OUTCOME.delivered, from, to)
  }

  setUndecodable(from: number, to: number): void {
    if (this.#outcomes[from] === OUTCOME.delivered) this.#delivered -= to - from
    this.#outcomes.fill(OUTCOME.undecodable, from, to)
  }

  /** Whether LAST_IN_SLOT is known and every data set up to it was delivered or is void; true once. */
  takeCompleted(): boolean {
    if (this.#wasCompleteTaken || this.pending > 0 || this.#delivered !== this.#lastSetCount) return false
    this.#wasCompleteTaken = true
    return true
  }

  /** The leader changed the parent of the block with the marker in this FEC set, which is not void: nothing before it can be missing. */
  changeParent(marker: number, parentSlot: number | undefined): void {
    this.counts.parentUpdates += 1
    this.#changedParent = parentSlot
    this.#voidBelow = marker
    this.setDelivered(0, marker)
  }

  /** Whether the data set that ends before this FEC set is void. */
  isVoid(to: number): boolean {
    return to <= this.#voidBelow
  }

  /** The slots of which nothing was decoded, behind the one that was closed before this one. Those between this one and its parent are skipped. */
  *gapsBefore(lastClosed: number): Generator<Gap> {
    const { parentSlot } = this
    const end = parentSlot ?? this.slot
    const listedFrom = Math.max(lastClosed + 1, end - UNKNOWN_SLOTS_MAX)
    if (listedFrom > lastClosed + 1) yield { ...wholeSlot(listedFrom - 1, 'slot-unknown'), firstSlot: lastClosed + 1 }
    for (let slot = listedFrom; slot < end; slot++) yield wholeSlot(slot, 'slot-unknown')
    if (parentSlot !== undefined && parentSlot > lastClosed) yield wholeSlot(parentSlot, 'slot-missing')
  }

  /** The indexes that were not delivered, as few ranges as possible. */
  *gaps(): Generator<Gap> {
    const end = this.#lastSetCount ?? this.setCount
    for (let from = 0; from < end; ) {
      const outcome = this.#outcomes[from] as number
      let to = from + 1
      while (to < end && this.#outcomes[to] === outcome) to += 1
      const isTail = to === end && this.#lastSetCount === undefined
      if (outcome === OUTCOME.undecodable) yield this.#gap(from, to, 'undecodable')
      else if (outcome === OUTCOME.open) yield this.#gap(from, isTail ? undefined : to, 'missing')
      if (isTail && outcome !== OUTCOME.open) yield this.#gap(to, undefined, 'missing')
      from = to
    }
    if (end === 0) yield this.#gap(0, undefined, 'missing')
  }

  #gap(from: number, to: number | undefined, reason: GapReason): Gap {
    let dataSets = 0
    let isEnded = false
    for (let i = from; i < (to ?? this.setCount); i++) {
      isEnded = isAnyVersion(this.sets[i], ({ endsDataSet }) => endsDataSet)
      if (isEnded) dataSets += 1
    }
    return {
      kind: 'gap',
      slot: this.slot,
      startIndex: from * FEC_SET_DATA_SHREDS,
      endIndex: to === undefined ? undefined : to * FEC_SET_DATA_SHREDS,
      reason,
      dataSets: dataSets + (isEnded && to !== undefined ? 0 : 1),
    }
  }

  /** FEC sets whose data shreds are not all known, in any version. */
  #notRecoverable(): number {
    let count = 0
    for (let i = 0; i < (this.#lastSetCount ?? this.setCount); i++)
      if (!isAnyVersion(this.sets[i], ({ isComplete }) => isComplete)) count += 1
    return count
  }

  report(dataSetsLost: number, closedBy: ClosedBy): SlotReport {
    return {
      kind: 'slot-report',
      slot: this.slot,
      parentSlot: this.parentSlot,
      ...this.counts,
      dataSetsLost,
      fecSets: this.#lastSetCount ?? this.setCount,
      fecSetsNotRecoverable: this.#notRecoverable(),
      firstShredNanos: this.firstShredNanos,
      lastShredNanos: this.lastShredNanos,
      isComplete: dataSetsLost === 0,
      isConflicting: this.#isConflicting || this.setCount > (this.#lastSetCount ?? this.setCount),
      closedBy,
    }
  }

  /** Notes the parent and the end of the slot as this set has them. False when its parent is the first that contradicts another set. */
  learn(set: FecSet): boolean {
    if (set.ending === ENDING.endsSlot) {
      if (this.#lastSetCount !== undefined && this.#lastSetCount !== set.index + 1) this.#isConflicting = true
      this.#lastSetCount = Math.max(this.#lastSetCount ?? 0, set.index + 1)
    }
    if (set.parentOffset === -1 || set.parentOffset === this.#parentOffset) return true
    if (this.#parentOffset === -1) {
      this.#parentOffset = set.parentOffset
      return true
    }
    this.#isConflicting = true
    if (this.#isParentConflicting) return true
    this.#isParentConflicting = true
    return false
  }
}

function wholeSlot(slot: number, reason: GapReason): Gap {
  return { kind: 'gap', slot, startIndex: 0, endIndex: undefined, reason, dataSets: 1 }
}

function isAnyVersion(first: FecSet | undefined, holds: (set: FecSet) => boolean): boolean {
  for (let set = first; set !== undefined; set = set.other) if (holds(set)) return true
  return false
}
