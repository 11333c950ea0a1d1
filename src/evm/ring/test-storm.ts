import { type Random, randomInt } from '../../core/random.ts'
import {
  alignPayload,
  DESCRIPTOR,
  DESCRIPTOR_BYTES,
  HEADER,
  HEADER_BYTES,
  payloadSectionOffset,
  type RingControl,
  type RingGeometry,
  SECTION_BYTES,
} from './layout.ts'
import type { RingSource, RingTarget } from './source.ts'
import { createMemoryRing, type MemoryRing } from './test-memory-ring.ts'
import { type RingEvent, RingWriter } from './writer.ts'

type Store = { offset: number; bytes: Uint8Array }

/** A writer thread: its pending stores, and the start of the group it is writing. */
type Thread = { stores: Store[]; firstSeqno: number; firstOffset: number }

/**
 * For tests: several threads of one node write a ring while a reader reads it. Every 8-byte store of every thread may become visible
 * at any moment, in the order of its own thread: between two reads, and between the pieces of one read, which arrive in any order.
 */
export class RingStorm {
  readonly geometry: RingGeometry
  readonly source: RingSource
  readonly writer: RingWriter
  /** Recorded events by sequence number. */
  readonly recorded = new Map<number, RingEvent>()
  /** Sequence numbers whose thread died before it committed them. */
  readonly dead = new Set<number>()
  readonly #ring: MemoryRing
  readonly #random: Random
  readonly #threads: Thread[] = []
  readonly #makeEvents: (firstSeqno: number) => RingEvent[]
  #current: Store[] = []
  /** Probability of stores at each opportunity, and their maximum number. */
  haste = 0
  burst = 0

  constructor(
    options: {
      geometry: RingGeometry
      windowStepBytes: number
      threads: number
      random: Random
      /** Initial counters. */
      control: RingControl
      /** The writer stores single u64s into memory instead of writing by position. */
      isMapped?: boolean
    },
    makeEvents: (firstSeqno: number) => RingEvent[],
  ) {
    this.geometry = options.geometry
    this.#random = options.random
    this.#makeEvents = makeEvents
    this.#ring = createMemoryRing(options.geometry)
    for (let thread = 0; thread < options.threads; thread++)
      this.#threads.push({ stores: [], firstSeqno: 0, firstOffset: 0 })
    const write: RingTarget['write'] = (offset, bytes) => this.#write(offset, bytes)
    const storeU64 = (offset: number, value: number): void =>
      write(offset, new Uint8Array(BigUint64Array.of(BigInt(value)).buffer))
    const target: RingTarget = options.isMapped === true ? { write, storeU64 } : { write }
    const { geometry, windowStepBytes, control } = options
    this.writer = new RingWriter({ geometry, windowStepBytes, control }, target)
    this.source = {
      sizeBytes: this.#ring.image.length,
      isStatic: false,
      read: (offset, bytes, at, length) => this.#read(offset, bytes, at, length),
    }
  }

  /** An idle thread records a group; its stores become visible later. */
  record(at: number): void {
    const thread = this.#threads[at] as Thread
    const firstSeqno = this.writer.lastSeqno + 1
    const firstOffset = this.writer.control.nextPayloadByte
    const events = this.#makeEvents(firstSeqno)
    if (thread.stores.length > 0 || this.#wouldLapThread(events)) return
    for (const [index, event] of events.entries()) this.recorded.set(firstSeqno + index, event)
    thread.firstSeqno = firstSeqno
    thread.firstOffset = firstOffset
    this.#current = thread.stores
    for (const _ of this.writer.steps(events));
  }

  /** The format does not handle a writer that is overtaken by a full ring while it writes; real rings are too large for that. */
  #wouldLapThread(events: readonly RingEvent[]): boolean {
    const bytes = events.reduce((sum, { payload }) => sum + alignPayload(payload.length), 0)
    const { lastSeqno, nextPayloadByte } = this.writer.control
    return this.#threads.some(
      ({ stores, firstSeqno, firstOffset }) =>
        stores.length > 0 &&
        (lastSeqno + events.length >= firstSeqno + this.geometry.capacity ||
          nextPayloadByte + bytes > firstOffset + this.geometry.payloadBytes),
    )
  }

  /** Makes one store of a random thread visible. */
  step(): void {
    const at = randomInt(this.#random, this.#threads.length)
    const store = this.#threads[at]?.stores.shift()
    if (store === undefined) this.record(at)
    else this.#ring.target.write(store.offset, store.bytes)
  }

  /** A thread dies: its pending stores are lost. */
  kill(at: number): void {
    for (const { offset, bytes } of (this.#threads[at] as Thread).stores.splice(0)) {
      const isSeqno =
        offset >= SECTION_BYTES &&
        offset < payloadSectionOffset(this.geometry) &&
        offset % DESCRIPTOR_BYTES === DESCRIPTOR.seqno
      const seqno = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true))
      if (isSeqno && seqno > 0) this.dead.add(seqno)
    }
  }

  /** All threads complete their pending stores. */
  settle(): void {
    for (const { stores } of this.#threads)
      for (const store of stores.splice(0)) this.#ring.target.write(store.offset, store.bytes)
  }

  #write(offset: number, bytes: Uint8Array): void {
    // The counters are atomic operations of the node: visible at once and monotone.
    if (offset < HEADER_BYTES) return this.#ring.target.write(offset, bytes)
    for (let at = 0; at < bytes.length; at += 8)
      this.#current.push({ offset: offset + at, bytes: bytes.slice(at, at + 8) })
  }

  #read(offset: number, target: Uint8Array, targetAt: number, length: number): void {
    const isHeader = offset === 0
    const piece = isHeader ? length : 8 * (1 + randomInt(this.#random, 16))
    const starts = Array.from({ length: Math.ceil(length / piece) }, (_, at) => at * piece)
    if (this.#random.float() < 0.5) starts.reverse()
    for (const start of starts) {
      this.#interfere()
      const count = Math.min(piece, length - start)
      target.set(this.#ring.image.subarray(offset + start, offset + start + count), targetAt + start)
    }
    this.#interfere()
  }

  #interfere(): void {
    if (this.#random.float() >= this.haste) return
    for (let steps = randomInt(this.#random, this.burst); steps > 0; steps--) this.step()
  }

  /** The counter in the ring's header. */
  lastSeqno(): number {
    return Number(new DataView(this.#ring.image.buffer).getBigUint64(HEADER.lastSeqno, true))
  }
}
