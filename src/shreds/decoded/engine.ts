import { createShredHead, FEC_SET_DATA_SHREDS, type ShredHead, scanShred } from '../../solana/shred/shred.ts'
import { SLOT_MS_DEFAULT } from '../../solana/slot-pace.ts'
import { decodeDataSet, parentOf } from './data-set.ts'
import {
  type ClosedBy,
  createEngineCounts,
  type DataSet,
  type DecodedEvent,
  type EngineCounts,
  type ShredOutcome,
} from './events.ts'
import { FecSet, type ReceivedShred } from './fec-set.ts'
import { findCompleteDataSets } from './find-data-sets.ts'
import { DIRECT_FEC_SETS_MAX } from './large-data-set.ts'
import { LargeDataSets } from './large-data-sets.ts'
import { CLOSED_SLOTS, ClosedSlots, OpenSlots } from './open-slots.ts'
import { SetRecovery } from './recover-set.ts'
import { ShredCells } from './shred-cells.ts'
import type { OpenSlot } from './slot.ts'

export type EngineOptions = {
  /** Slots open at once; beyond it the oldest is closed. While a large data set of that one is being decoded there are up to twice as many. */
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

/**
 * FEC sets known at once, held or finished, for each one that can be held: finished ones are remembered until their slot is closed. Beyond it the
 * oldest slot is closed.
 */
const KNOWN_SETS_PER_HELD = 4
/** How often slots are checked for silence. */
const CHECK_NANOS = 50e6
/** Work for one shred or one step, so that neither holds the thread: slots that are closed, and the FEC sets in them after which no other is. */
const SLOTS_CLOSED_MAX = 8
const SETS_CLOSED_MAX = 256
/** The same for steps in decoding the large data sets of a slot that is to be closed. */
const LARGE_STEPS_MAX = 8

/**
 * From shreds to transactions. Shreds come in any order and in any number of copies. A FEC set is complete as soon as any 32 of its 64 shreds are
 * there. A data set is emitted, once, as soon as all its FEC sets are complete and its start is known: it starts at index 0 or behind a
 * DATA_COMPLETE flag. That flag and the end of a data set are always on the last data shred of a FEC set (rule 9 of SIMD-0504, which scanShred
 * checks), so a data set is a run of FEC sets. The runs follow the chain of merkle roots, so that two versions of a set are never mixed.
 *
 * The engine is synchronous, has no clock and no randomness: the same shreds make the same events. Time is that of the shreds and of `advance`.
 * Slots are closed in order of their number. What takes long is done by `work`, in steps, so that shreds can be taken in between: decoding a large
 * data set, and closing many slots.
 */
export class Engine {
  readonly counts: EngineCounts = createEngineCounts()
  /** Called when all slots were closed because the shreds go on at lower slots or with another version; `isNewChain`: not where a source may lag. */
  onRestart: (isNewChain: boolean) => void = () => undefined
  readonly #options: EngineOptions
  readonly #emit: (event: DecodedEvent) => void
  readonly #cells: ShredCells
  readonly #recovery: SetRecovery
  /** The shred that is pushed; reused. */
  readonly #shred: ReceivedShred = { bytes: new Uint8Array(0), at: 0, head: createShredHead(), isVerified: false }
  readonly #open: OpenSlots
  /** No shred of a slot below is taken: it is closed, or it will be by the next steps. */
  #floor = 0
  /** The highest slot with a complete FEC set: a single shred whose signature could not be checked does not close other slots. */
  #newest = -1
  #lastClosed: number | undefined
  #lastClosedShredNanos = 0
  readonly #closed = new ClosedSlots()
  #generation = -1
  readonly #knownSetsMax: number
  #knownSets = 0
  readonly #large: LargeDataSets
  #slotNanos = SLOT_MS_DEFAULT * 1e6
  #checkAtNanos = 0
  readonly #freeSets: FecSet[] = []

  constructor(options: EngineOptions, emit: (event: DecodedEvent) => void) {
    this.#options = options
    this.#emit = emit
    this.#open = new OpenSlots(options.shredsPerSlotMax / FEC_SET_DATA_SHREDS)
    this.#cells = new ShredCells(options.bytesMax)
    this.#recovery = new SetRecovery(this.#cells)
    this.#large = new LargeDataSets(this.#cells, {
      deliver: (slot, part) => this.#deliver(slot, part),
      onUndecodable: (slot, from, to) => this.#refuse(slot, from, to),
      onEnd: (slot) => this.#emitIfComplete(slot),
    })
    this.#knownSetsMax = KNOWN_SETS_PER_HELD * this.#cells.blocks
  }

  get openSlots(): number {
    return this.#open.size
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
   * against each other only. With another `generation` the engine begins anew: slots may be lower than those before.
   */
  push(
    bytes: Uint8Array,
    at: number,
    length: number,
    arrivalNanos: number,
    isVerified: boolean,
    generation = 0,
  ): ShredOutcome {
    if (arrivalNanos >= this.#checkAtNanos) this.advance(arrivalNanos)
    const shred = this.#shred
    shred.bytes = bytes
    shred.at = at
    shred.isVerified = isVerified
    const isWellFormed = scanShred(bytes, at, length, shred.head, this.#options.shredsPerSlotMax) === undefined
    if (isWellFormed && generation !== this.#generation) this.#begin(generation, shred.head)
    const outcome = isWellFormed ? this.#take(shred, arrivalNanos) : 'malformed'
    this.counts.shreds[outcome] += 1
    return outcome
  }

  /** Takes one step, of about a millisecond, in decoding large data sets and in closing slots. False when nothing is left to do. */
  work(): boolean {
    if (this.#large.size > 0) this.#large.step()
    const hasMore = this.#closeWhile('age', ({ slot }) => slot < this.#floor)
    return hasMore || this.#large.size > 0
  }

  /** Closes slots that have been silent for too long. All shreds that arrived before this time have been pushed. */
  advance(nowNanos: number): void {
    const { silentSlotsMax } = this.#options
    const silentNanos = (silentSlotsMax ?? Number.POSITIVE_INFINITY) * this.#slotNanos
    const isSilent = ({ slot, lastShredNanos }: OpenSlot) =>
      slot <= this.#newest && nowNanos - lastShredNanos >= silentNanos && this.#isTimeOf(slot, nowNanos)
    const hasMore = this.#closeWhile('silence', isSilent)
    this.#checkAtNanos = hasMore ? nowNanos : nowNanos + CHECK_NANOS
  }

  /** Whether the chain can be past this slot: one that a leader has sent early waits for its time. A jump of slot numbers is no early slot. */
  #isTimeOf(slot: number, nowNanos: number): boolean {
    const { silentSlotsMax = 0, slotsBehindMax } = this.#options
    const slots = slot - (this.#lastClosed ?? Number.NEGATIVE_INFINITY)
    if (slots > slotsBehindMax) return true
    return (slots + silentSlotsMax) * this.#slotNanos <= nowNanos - this.#lastClosedShredNanos
  }

  /** The length of a slot of the chain, as far as it is known. */
  setSlotMs(slotMs: number): void {
    this.#slotNanos = slotMs * 1e6
  }

  /** Closes all slots: nothing follows. */
  end(): void {
    while (this.#open.size > 0) this.#closeOldest('end')
  }

  #begin(generation: number, { slot, version }: ShredHead): void {
    this.end()
    const isNewChain = this.#closed.setVersion(version) || slot < this.#newest - CLOSED_SLOTS
    this.#floor = 0
    this.#newest = -1
    this.#lastClosed = undefined
    if (this.#generation >= 0) this.onRestart(isNewChain)
    this.#generation = generation
  }

  #take(shred: ReceivedShred, arrivalNanos: number): ShredOutcome {
    const slot = this.#slotOf(shred.head.slot, arrivalNanos)
    if (typeof slot === 'string') return slot
    const set = this.#setOf(slot, shred)
    if (typeof set === 'string') return set
    if (!set.isConsistent(shred)) return 'inconsistent'
    if (set.has(shred)) {
      slot.counts.duplicates += 1
      return 'duplicate'
    }
    if (!set.isComplete && !this.#hold(slot, set, shred)) return 'memory-full'
    const endingBefore = set.ending
    set.mark(shred)
    slot.counts.shreds += 1
    slot.lastShredNanos = arrivalNanos
    if (set.isComplete) return 'accepted'
    if (set.hasAllData || (set.held === FEC_SET_DATA_SHREDS && !set.isCodingMismatched)) this.#complete(slot, set)
    if (!slot.learn(set)) this.counts.parentsConflicting += 1
    if (set.isComplete || set.ending !== endingBefore)
      for (const last of findCompleteDataSets(slot, set)) this.#finish(slot, last, arrivalNanos)
    return 'accepted'
  }

  #slotOf(number: number, arrivalNanos: number): OpenSlot | 'late' | 'memory-full' {
    if (number < this.#floor) return 'late'
    const known = this.#open.find(number)
    if (known !== undefined) return known
    if (this.#closed.has(number)) return 'late'
    const { slotsMax } = this.#options
    const { size, oldest } = this.#open
    // With all places taken by newer slots this one is the oldest.
    if (size >= slotsMax && oldest !== undefined && number < oldest.slot) return 'late'
    const hasRoom = this.#makeRoom('count', () => this.#open.size < slotsMax)
    return hasRoom || this.#open.size < 2 * slotsMax ? this.#open.open(number, arrivalNanos) : 'memory-full'
  }

  /** The version of the FEC set that the shred belongs to, or why there is none. */
  #setOf(slot: OpenSlot, shred: ReceivedShred): FecSet | 'too-many-versions' | 'memory-full' {
    const first = slot.sets[shred.head.fecSetIndex / FEC_SET_DATA_SHREDS]
    for (let set = first; set !== undefined; set = set.other) {
      if (!set.owns(shred)) continue
      // The root is signed, if it is that of a signed shred.
      if (shred.isVerified) set.isVerified = true
      return set
    }
    if (first !== undefined) {
      if (!slot.addVersion()) return 'too-many-versions'
      this.counts.fecSetsConflicting += 1
    }
    if (!this.#makeRoom('memory', () => this.#knownSets < this.#knownSetsMax, slot)) return 'memory-full'
    const set = this.#freeSets.pop() ?? new FecSet()
    this.#knownSets += 1
    set.begin(shred)
    slot.add(set)
    return set
  }

  /** Stores the shred. False when there is no memory for it. */
  #hold(slot: OpenSlot, set: FecSet, shred: ReceivedShred): boolean {
    const { bytes, at, head } = shred
    const position = head.index - head.fecSetIndex
    const isData = head.layout.kind === 'data'
    if (set.isCodingMismatched) {
      if (isData) this.#cells.put(set.block, set.cells[position] as number, bytes, at, head)
      return true
    }
    if (set.block === -1) {
      if (!this.#makeRoom('memory', () => this.#cells.used < this.#cells.blocks, slot)) return false
      set.block = this.#cells.acquire()
    }
    const cell = set.held++
    set.cells[isData ? position : FEC_SET_DATA_SHREDS + position] = cell
    this.#cells.put(set.block, cell, bytes, at, head)
    return true
  }

  #complete(slot: OpenSlot, set: FecSet): void {
    if (!set.hasAllData) {
      if (!this.#recovery.recover(set, slot.slot)) {
        set.isCodingMismatched = true
        this.counts.fecSetsRecoveryFailed += 1
        return
      }
      set.wasRecovered = true
      slot.counts.fecSetsRecovered += 1
      this.counts.fecSetsRecovered += 1
    }
    set.isComplete = true
    if (slot.slot <= this.#newest) return
    this.#newest = slot.slot
    this.#floor = Math.max(this.#floor, slot.slot - this.#options.slotsBehindMax)
    this.#closeWhile('age', ({ slot: number }) => number < this.#floor)
  }

  /** Emits the data set that ends with this FEC set, unless it is void or another version of it was emitted. */
  #finish(slot: OpenSlot, last: FecSet, arrivalNanos: number): void {
    if (last.isFinished) return
    const from = last.start
    const to = last.index + 1
    if (slot.isVoid(to)) this.counts.dataSetsVoid += 1
    else if (!slot.isOpen(from, to) || !last.isHeld) this.counts.dataSetsConflicting += 1
    else if (to - from > DIRECT_FEC_SETS_MAX) return this.#large.begin(slot, last, arrivalNanos)
    else {
      const decoded = decodeDataSet(slot.slot, last, this.#cells, arrivalNanos)
      if (decoded === undefined) this.#refuse(slot, from, to)
      else {
        slot.setDelivered(from, to)
        if (decoded.kind === 'marker') {
          slot.counts.markers += 1
          if (decoded.isParentUpdate) slot.changeParent(from, parentOf(decoded))
          this.counts.markers += 1
          this.#emit(decoded)
        } else this.#deliver(slot, decoded)
        this.#emitIfComplete(slot)
      }
    }
    for (let set: FecSet | undefined = last; set !== undefined; set = set.previous) this.#release(set)
  }

  #deliver(slot: OpenSlot, set: DataSet): void {
    const count = set.part?.isLast === false ? 0 : 1
    if (slot.isVoid(set.endIndex / FEC_SET_DATA_SHREDS)) {
      this.counts.dataSetsVoid += count
      return
    }
    slot.counts.dataSets += count
    this.counts.dataSets += count
    slot.counts.transactions += set.transactions.length
    this.counts.transactions += set.transactions.length
    this.#emit(set)
  }

  #refuse(slot: OpenSlot, from: number, to: number): void {
    this.counts.dataSetsUndecodable += 1
    if (!slot.isVoid(to)) slot.setUndecodable(from, to)
  }

  #emitIfComplete(slot: OpenSlot): void {
    if (!slot.takeCompleted()) return
    const { slot: number, parentSlot, counts } = slot
    this.#emit({ kind: 'slot-completed', slot: number, parentSlot, transactions: counts.transactions })
  }

  #release(set: FecSet): void {
    set.isFinished = true
    if (set.block === -1) return
    this.#cells.release(set.block)
    set.block = -1
  }

  /** Closes the oldest slots for which this holds, as many as one step may, and none before its large data sets are decoded. True when more are left. */
  #closeWhile(closedBy: ClosedBy, isDue: (slot: OpenSlot) => boolean): boolean {
    let sets = 0
    for (let closed = 0; ; closed++) {
      const slot = this.#open.oldest
      if (slot === undefined || slot.pending > 0 || !isDue(slot)) return false
      if (closed === SLOTS_CLOSED_MAX || sets >= SETS_CLOSED_MAX) return true
      sets += slot.setCount
      this.#closeOldest(closedBy)
    }
  }

  /** Closes the oldest slots until there is room, but not this one; false when there is none yet. */
  #makeRoom(closedBy: ClosedBy, hasRoom: () => boolean, keep?: OpenSlot): boolean {
    for (let closed = 0; !hasRoom(); closed++)
      if (closed === SLOTS_CLOSED_MAX || this.#open.oldest === keep || !this.#closeOldest(closedBy)) return false
    return true
  }

  /** False while its large data sets are being decoded: some steps of that are taken. */
  #closeOldest(closedBy: ClosedBy): boolean {
    const slot = this.#open.oldest
    if (slot === undefined) return false
    for (let steps = 0; slot.pending > 0; steps++) {
      if (steps === LARGE_STEPS_MAX) return false
      this.#large.step()
    }
    const number = slot.slot
    this.#report(slot, number < this.#floor ? 'age' : closedBy)
    this.#open.removeOldest()
    this.#floor = Math.max(this.#floor, number + 1)
    this.#lastClosed = number
    this.#closed.add(number)
    this.#lastClosedShredNanos = slot.lastShredNanos
    this.#forget(slot)
    return true
  }

  /** Emits which slots before it are missing, what the slot lacks, and its report. */
  #report(slot: OpenSlot, closedBy: ClosedBy): void {
    if (this.#lastClosed !== undefined) {
      for (const gap of slot.gapsBefore(this.#lastClosed)) {
        if (gap.reason === 'slot-missing') this.counts.slots.missing += 1
        this.counts.gaps += 1
        this.#emit(gap)
      }
    }
    let dataSetsLost = 0
    for (const gap of slot.gaps()) {
      dataSetsLost += gap.dataSets
      this.counts.gaps += 1
      this.#emit(gap)
    }
    this.counts.slots[closedBy] += 1
    this.counts.slots[dataSetsLost === 0 ? 'complete' : 'incomplete'] += 1
    this.#emit(slot.report(dataSetsLost, closedBy))
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
    this.#open.reuse(slot)
  }
}
