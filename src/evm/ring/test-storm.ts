import { type Random, randomInt } from '../../core/random.ts'
import { alignPayload, HEADER, HEADER_BYTES, type RingControl, type RingGeometry, SECTION_BYTES } from './layout.ts'
import { createMemoryRing, type MemoryRing, type RingSource, type RingTarget } from './source.ts'
import { type RingEvent, RingWriter } from './writer.ts'

type Store = { position: number; bytes: Uint8Array }

/** A thread: the stores it has still to make, and where the group it is writing begins. */
type Thread = { stores: Store[]; firstSeqno: number; firstOffset: number }

/**
 * For tests: several threads of one node write a ring while somebody reads it. Every 8-byte store of every thread may become visible
 * at any moment, in the order of its own thread: between two reads, and between the pieces of one read, which arrive in any order.
 */
export class RingStorm {
  readonly geometry: RingGeometry
  readonly source: RingSource
  readonly writer: RingWriter
  /** What was recorded, by sequence number. */
  readonly recorded = new Map<number, RingEvent>()
  /** Sequence numbers whose thread died before it committed them. */
  readonly dead = new Set<number>()
  readonly #ring: MemoryRing
  readonly #random: Random
  readonly #threads: Thread[] = []
  readonly #makeEvents: (firstSeqno: number) => RingEvent[]
  #current: Store[] = []
  /** Chance that something is stored at an opportunity, and how much at most. */
  haste = 0
  burst = 0

  constructor(
    options: {
      geometry: RingGeometry
      windowStepBytes: number
      threads: number
      random: Random
      /** Where the counters begin. */
      control: RingControl
      /** The writer stores into memory, number by number, instead of writing by position. */
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
    const write: RingTarget['write'] = (position, bytes) => this.#write(position, bytes)
    const storeU64 = (position: number, value: number): void =>
      write(position, new Uint8Array(BigUint64Array.of(BigInt(value)).buffer))
    const target: RingTarget = options.isMapped === true ? { write, storeU64 } : { write }
    const { geometry, windowStepBytes, control } = options
    this.writer = new RingWriter({ geometry, windowStepBytes, control }, target)
    this.source = {
      sizeBytes: this.#ring.image.length,
      isStatic: false,
      read: (position, bytes, at, length) => this.#read(position, bytes, at, length),
    }
  }

  /** A thread without work records a group; its stores become visible later. */
  record(at: number): void {
    const thread = this.#threads[at] as Thread
    const firstSeqno = this.writer.lastSeqno + 1
    const firstOffset = this.writer.control.nextPayloadByte
    const events = this.#makeEvents(firstSeqno)
    if (thread.stores.length > 0 || this.#wouldLapThread(events)) return
    for (const [position, event] of events.entries()) this.recorded.set(firstSeqno + position, event)
    thread.firstSeqno = firstSeqno
    thread.firstOffset = firstOffset
    this.#current = thread.stores
    for (const _ of this.writer.steps(events));
  }

  /** The format has no answer to a writer that is overtaken by a whole ring while it writes, and real rings are too large for that. */
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

  /** Lets one store of some thread become visible. */
  step(): void {
    const at = randomInt(this.#random, this.#threads.length)
    const store = this.#threads[at]?.stores.shift()
    if (store === undefined) this.record(at)
    else this.#ring.target.write(store.position, store.bytes)
  }

  /** A thread dies: what it has not stored will never be. */
  kill(at: number): void {
    for (const { position, bytes } of (this.#threads[at] as Thread).stores.splice(0)) {
      const isSlot =
        position >= SECTION_BYTES && position < SECTION_BYTES + this.geometry.capacity * 64 && position % 64 === 0
      const seqno = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true))
      if (isSlot && seqno > 0) this.dead.add(seqno)
    }
  }

  /** All threads finish what they have begun. */
  settle(): void {
    for (const { stores } of this.#threads)
      for (const store of stores.splice(0)) this.#ring.target.write(store.position, store.bytes)
  }

  #write(position: number, bytes: Uint8Array): void {
    // The counters are atomic operations of the node: visible at once, and never going back.
    if (position < HEADER_BYTES) return this.#ring.target.write(position, bytes)
    for (let at = 0; at < bytes.length; at += 8)
      this.#current.push({ position: position + at, bytes: bytes.slice(at, at + 8) })
  }

  #read(position: number, target: Uint8Array, targetAt: number, length: number): void {
    const isHeader = position === 0
    const piece = isHeader ? length : 8 * (1 + randomInt(this.#random, 16))
    const starts = Array.from({ length: Math.ceil(length / piece) }, (_, at) => at * piece)
    if (this.#random.float() < 0.5) starts.reverse()
    for (const start of starts) {
      this.#interfere()
      const count = Math.min(piece, length - start)
      target.set(this.#ring.image.subarray(position + start, position + start + count), targetAt + start)
    }
    this.#interfere()
  }

  #interfere(): void {
    if (this.#random.float() >= this.haste) return
    for (let steps = randomInt(this.#random, this.burst); steps > 0; steps--) this.step()
  }

  /** The counters as they stand in the ring. */
  lastSeqno(): number {
    return Number(new DataView(this.#ring.image.buffer).getBigUint64(HEADER.lastSeqno, true))
  }
}
