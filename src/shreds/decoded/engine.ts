import { createShredHead, FEC_SET_DATA_SHREDS, type ShredHead, scanShred } from '../../solana/shred/shred.ts'
import { SLOT_MS_DEFAULT } from '../../solana/slot-pace.ts'
import { decodeDataSet } from './data-set.ts'
import {
  type ClosedBy,
  createEngineCounts,
  type DataSet,
  type DecodedEvent,
  type EngineCounts,
  type ShredOutcome,
} from './events.ts'
import { FecSet } from './fec-set.ts'
import { findCompleteDataSets } from './find-data-sets.ts'
import { DIRECT_FEC_SETS_MAX } from './large-data-set.ts'
import { LargeDataSets } from './large-data-sets.ts'
import { SetRecovery } from './recover-set.ts'
import { ShredCells } from './shred-cells.ts'
import { OpenSlot } from './slot.ts'

export type EngineOptions = {
  /** Slots open at once; beyond it the oldest is closed. */
  readonly slotsMax: number
  /** A slot this far behind the newest is closed. */
  readonly slotsBehindMax: number
  /** A slot without a new shred for so many slot lengths is closed, once a newer one has begun; undefined: never. */
  readonly silentSlotsMax?: number | undefined
  /** Shreds held; at the limit the oldest slot is closed. */
  readonly bytesMax: number
  /** Data shreds of a slot; those with a higher index are malformed. */
  readonly shredsPerSlotMax: number
}

/** Second and further versions of FEC sets in one slot. */
const CONFLICTING_VERSIONS_MAX = 64
/**
 * FEC sets known at once, held or finished, for each one that can be held: finished ones are remembered until their slot is closed. Beyond it the
 * oldest slot is closed.
 */
const KNOWN_SETS_PER_HELD = 4
/** How often slots are checked for silence. */
const CHECK_NANOS = 50e6

/**
 * From shreds to transactions. Shreds come in any order and in any number of copies. A FEC set is complete as soon as any 32 of its 64 shreds are
 * there. A data set is emitted, once, as soon as all its FEC sets are complete and its start is known: it starts at index 0 or behind a
 * DATA_COMPLETE flag. That flag and the end of a data set are always on the last data shred of a FEC set (rule 9 of SIMD-0504, which scanShred
 * checks), so a data set is a run of FEC sets. The runs follow the chain of merkle roots, so that two versions of a set are never mixed.
 *
 * The engine is synchronous, has no clock and no randomness: the same shreds make the same events. Time is that of the shreds and of `advance`.
 * Slots are closed in order of their number. A large data set is decoded by `work`, in steps, so that shreds can be taken in between.
 */
export class Engine {
  readonly counts: EngineCounts = createEngineCounts()
  readonly #options: EngineOptions
  readonly #emit: (event: DecodedEvent) => void
  readonly #cells: ShredCells
  readonly #recovery: SetRecovery
  readonly #head = createShredHead()
  readonly #open = new Map<number, OpenSlot>()
  /** Numbers of the open slots, ascending. */
  readonly #order: number[] = []
  #latest: OpenSlot | undefined
  /** All slots below are closed. */
  #floor = 0
  /** The highest slot with a complete FEC set: a single shred whose signature could not be checked does not close other slots. */
  #newest = -1
  #lastClosed: number | undefined
  readonly #knownSetsMax: number
  #knownSets = 0
  readonly #large: LargeDataSets
  #slotNanos = SLOT_MS_DEFAULT * 1e6
  #checkAtNanos = 0
  readonly #freeSets: FecSet[] = []
  readonly #freeSlots: OpenSlot[] = []

  constructor(options: EngineOptions, emit: (event: DecodedEvent) => void) {
    this.#options = options
    this.#emit = emit
    this.#cells = new ShredCells(options.bytesMax)
    this.#recovery = new SetRecovery(this.#cells)
    this.#large = new LargeDataSets(this.#cells, {
      deliver: (slot, part) => this.#deliver(slot, part),
      onDelivered: (slot) => this.#emitIfComplete(slot),
      onUndecodable: (slot, from, to) => this.#refuse(slot, from, to),
    })
    this.#knownSetsMax = KNOWN_SETS_PER_HELD * this.#cells.blocks
  }

  get openSlots(): number {
    return this.#order.length
  }

  get newestSlot(): number | undefined {
    return this.#newest < 0 ? undefined : this.#newest
  }

  /** FEC sets whose shreds are held now, of FEC_SET_BYTES each. */
  get heldSets(): number {
    return this.#cells.used
  }

  /**
   * Takes the shred at `at`. `isVerified`: it is proven that the leader signed it. Where this is not known, the shreds of a FEC set are checked
   * against each other only.
   */
  push(bytes: Uint8Array, at: number, length: number, arrivalNanos: number, isVerified: boolean): ShredOutcome {
    if (arrivalNanos >= this.#checkAtNanos) this.advance(arrivalNanos)
    const outcome = this.#take(bytes, at, length, arrivalNanos, isVerified)
    this.counts.shreds[outcome] += 1
    return outcome
  }

  /** Takes one step in decoding large data sets, of about a millisecond. False when nothing is left to do. */
  work(): boolean {
    if (this.#large.size === 0) return false
    this.#large.step()
    // A slot that waited for its large data set may be due.
    this.#closeBelow(this.#floor)
    return this.#large.size > 0
  }

  /** Closes slots that have been silent for too long. All shreds that arrived before this time have been pushed. */
  advance(nowNanos: number): void {
    this.#checkAtNanos = nowNanos + CHECK_NANOS
    const { silentSlotsMax } = this.#options
    if (silentSlotsMax === undefined) return
    const silentNanos = silentSlotsMax * this.#slotNanos
    for (let slot = this.#oldest; slot !== undefined && slot.slot <= this.#newest; slot = this.#oldest) {
      if (slot.pending > 0 || nowNanos - slot.lastShredNanos < silentNanos) return
      this.#closeOldest('silence')
    }
  }

  /** The length of a slot of the chain, as far as it is known. */
  setSlotMs(slotMs: number): void {
    this.#slotNanos = slotMs * 1e6
  }

  /** Closes all slots: nothing follows. */
  end(): void {
    while (this.#order.length > 0) this.#closeOldest('end')
  }

  #take(bytes: Uint8Array, at: number, length: number, arrivalNanos: number, isVerified: boolean): ShredOutcome {
    const head = this.#head
    if (scanShred(bytes, at, length, head, this.#options.shredsPerSlotMax) !== undefined) return 'malformed'
    const slot = this.#slotOf(head.slot, arrivalNanos)
    if (slot === undefined) return 'late'
    const set = this.#setOf(slot, bytes, at, head, isVerified)
    if (typeof set === 'string') return set
    if (!set.isConsistent(bytes, at, head)) return 'inconsistent'
    if (set.has(head)) {
      slot.duplicates += 1
      return 'duplicate'
    }
    if (!set.isComplete && !this.#hold(slot, set, bytes, at, head)) return 'memory-full'
    const endingBefore = set.ending
    set.mark(bytes, at, head)
    slot.shreds += 1
    slot.lastShredNanos = arrivalNanos
    if (set.isComplete) return 'accepted'
    if (set.hasAllData || (set.held === FEC_SET_DATA_SHREDS && !set.isCodeBad)) this.#complete(slot, set)
    this.#learn(slot, set)
    if (set.isComplete || set.ending !== endingBefore)
      for (const last of findCompleteDataSets(slot, set)) this.#finish(slot, last, arrivalNanos)
    return 'accepted'
  }

  #slotOf(number: number, arrivalNanos: number): OpenSlot | undefined {
    if (number < this.#floor) return undefined
    if (this.#latest?.slot === number) return this.#latest
    const known = this.#open.get(number)
    if (known !== undefined) {
      this.#latest = known
      return known
    }
    const { slotsMax, shredsPerSlotMax } = this.#options
    // With all places taken by newer slots this one is the oldest.
    if (this.#order.length >= slotsMax && number < (this.#order[0] as number)) return undefined
    if (this.#order.length >= slotsMax) this.#closeOldest('count')
    const slot = this.#freeSlots.pop() ?? new OpenSlot(shredsPerSlotMax / FEC_SET_DATA_SHREDS)
    slot.begin(number, arrivalNanos)
    this.#open.set(number, slot)
    let place = this.#order.length
    while (place > 0 && (this.#order[place - 1] as number) > number) place -= 1
    this.#order.splice(place, 0, number)
    this.#latest = slot
    return slot
  }

  /** The version of the FEC set that the shred belongs to, or why there is none. */
  #setOf(
    slot: OpenSlot,
    bytes: Uint8Array,
    at: number,
    head: ShredHead,
    isVerified: boolean,
  ): FecSet | 'too-many-versions' | 'memory-full' {
    const first = slot.sets[head.fecSetIndex / FEC_SET_DATA_SHREDS]
    for (let set = first; set !== undefined; set = set.other) {
      if (!set.owns(bytes, at, head, isVerified)) continue
      // The root is signed, if it is that of a signed shred.
      if (isVerified) set.isVerified = true
      return set
    }
    if (first !== undefined) {
      slot.isConflicting = true
      if (slot.versionsConflicting >= CONFLICTING_VERSIONS_MAX) return 'too-many-versions'
      slot.versionsConflicting += 1
      this.counts.fecSetsConflicting += 1
    }
    while (this.#knownSets >= this.#knownSetsMax) if (!this.#closeOlderThan(slot)) return 'memory-full'
    const set = this.#freeSets.pop() ?? new FecSet()
    this.#knownSets += 1
    set.begin(bytes, at, head, isVerified)
    slot.add(set)
    return set
  }

  /** Stores the shred. False when there is no memory for it. */
  #hold(slot: OpenSlot, set: FecSet, bytes: Uint8Array, at: number, head: ShredHead): boolean {
    const position = head.index - head.fecSetIndex
    const isData = head.layout.kind === 'data'
    if (set.isCodeBad) {
      if (isData) this.#cells.put(set.block, set.cells[position] as number, bytes, at, head)
      return true
    }
    while (set.block === -1) {
      set.block = this.#cells.acquire()
      if (set.block === -1 && !this.#closeOlderThan(slot)) return false
    }
    const cell = set.held++
    set.cells[isData ? position : FEC_SET_DATA_SHREDS + position] = cell
    this.#cells.put(set.block, cell, bytes, at, head)
    return true
  }

  #complete(slot: OpenSlot, set: FecSet): void {
    if (!set.hasAllData) {
      if (!this.#recovery.recover(set, slot.slot)) {
        set.isCodeBad = true
        this.counts.fecSetsRecoveryFailed += 1
        return
      }
      set.wasRecovered = true
      slot.fecSetsRecovered += 1
      this.counts.fecSetsRecovered += 1
    }
    set.isComplete = true
    if (slot.slot <= this.#newest) return
    this.#newest = slot.slot
    this.#closeBelow(slot.slot - this.#options.slotsBehindMax)
  }

  #learn(slot: OpenSlot, set: FecSet): void {
    if (slot.learn(set)) return
    if (!slot.isParentConflicting) this.counts.parentsConflicting += 1
    slot.isParentConflicting = true
    slot.isConflicting = true
  }

  /** Emits the data set that ends with this FEC set, unless another version of it was emitted. */
  #finish(slot: OpenSlot, last: FecSet, arrivalNanos: number): void {
    if (last.isFinished) return
    const from = last.start
    const to = last.index + 1
    if (!slot.isOpen(from, to) || !last.isHeld) this.counts.dataSetsConflicting += 1
    else if (to - from > DIRECT_FEC_SETS_MAX) return this.#large.begin(slot, last, arrivalNanos)
    else {
      const decoded = decodeDataSet(slot.slot, last, this.#cells, arrivalNanos)
      if (decoded === undefined) this.#refuse(slot, from, to)
      else {
        slot.setDelivered(from, to)
        if (decoded.kind === 'marker') {
          slot.markers += 1
          if (decoded.isParentUpdate) slot.parentUpdates += 1
          this.counts.markers += 1
          this.#emit(decoded)
        } else this.#deliver(slot, decoded)
        this.#emitIfComplete(slot)
      }
    }
    for (let set: FecSet | undefined = last; set !== undefined; set = set.previous) this.#release(set)
  }

  #deliver(slot: OpenSlot, set: DataSet): void {
    if (set.part?.isLast !== false) {
      slot.dataSets += 1
      this.counts.dataSets += 1
    }
    slot.transactions += set.transactions.length
    this.counts.transactions += set.transactions.length
    this.#emit(set)
  }

  #refuse(slot: OpenSlot, from: number, to: number): void {
    slot.setUndecodable(from, to)
    this.counts.dataSetsUndecodable += 1
  }

  #emitIfComplete(slot: OpenSlot): void {
    if (slot.isCompleteEmitted || !slot.isComplete) return
    slot.isCompleteEmitted = true
    const { slot: number, parentSlot, transactions } = slot
    this.#emit({ kind: 'slot-completed', slot: number, parentSlot, transactions })
  }

  #release(set: FecSet): void {
    set.isFinished = true
    if (set.block === -1) return
    this.#cells.release(set.block)
    set.block = -1
  }

  #closeBelow(floor: number): void {
    for (let slot = this.#oldest; slot !== undefined && slot.slot < floor && slot.pending === 0; slot = this.#oldest)
      this.#closeOldest('age')
    this.#floor = Math.max(this.#floor, floor)
  }

  get #oldest(): OpenSlot | undefined {
    const [number] = this.#order
    return number === undefined ? undefined : this.#open.get(number)
  }

  /** Closes the oldest slot to make room for this one; false when it is the oldest itself. */
  #closeOlderThan(slot: OpenSlot): boolean {
    if (this.#order[0] === slot.slot) return false
    this.#closeOldest('memory')
    return true
  }

  #closeOldest(closedBy: ClosedBy): void {
    const number = this.#order.shift() as number
    const slot = this.#open.get(number) as OpenSlot
    // There is no room for another slot or shred until this one is closed, or no other slot follows.
    while (slot.pending > 0) this.#large.step()
    this.#open.delete(number)
    if (this.#latest === slot) this.#latest = undefined
    this.#floor = Math.max(this.#floor, number + 1)
    const { parentSlot } = slot
    if (this.#lastClosed !== undefined && parentSlot !== undefined && parentSlot > this.#lastClosed) {
      this.counts.slots.missing += 1
      this.counts.gaps += 1
      this.#emit({
        kind: 'gap',
        slot: parentSlot,
        startIndex: 0,
        endIndex: undefined,
        reason: 'slot-missing',
        dataSets: 1,
      })
    }
    this.#lastClosed = number
    let dataSetsLost = 0
    for (const gap of slot.gaps()) {
      dataSetsLost += gap.dataSets
      this.counts.gaps += 1
      this.#emit(gap)
    }
    this.counts.slots[closedBy] += 1
    this.counts.slots[dataSetsLost === 0 ? 'complete' : 'incomplete'] += 1
    this.#emit(slot.report(dataSetsLost, closedBy))
    this.#forget(slot)
  }

  #forget(slot: OpenSlot): void {
    for (let i = 0; i < slot.setCount; i++) {
      for (let set = slot.sets[i]; set !== undefined; ) {
        const { other } = set
        this.#release(set)
        set.reset()
        this.#knownSets -= 1
        this.#freeSets.push(set)
        set = other
      }
    }
    this.#freeSlots.push(slot)
  }
}
