import assert from 'node:assert/strict'
import { EventBatch, highHalf, lowHalf, u64At } from './event-batch.ts'
import {
  checkRingHeader,
  DESCRIPTOR,
  DESCRIPTOR_BYTES,
  descriptorOffset,
  HEADER_BYTES,
  RING_LIMITS,
  type RingControl,
  type RingGeometry,
  type RingLimits,
  type RingRefusal,
  readControl,
  ringFileBytes,
} from './layout.ts'
import { expirePayloads, type PayloadLimits, type PayloadPlan, planPayloads } from './payload-plan.ts'
import { findNextCommitted, findStart, type RingStart } from './position.ts'
import { type RingSource, readDescriptors, readPayload } from './source.ts'

const DESCRIPTOR_WORDS = DESCRIPTOR_BYTES / 4
const SEQNO = DESCRIPTOR.seqno / 4

export type ReaderOptions = {
  /** Events in one batch. 1,024 with their payloads stay in the processor's cache until they are folded; more are slower. */
  eventsMax: number
  /** Payload bytes in one batch; a single larger event is still read. */
  payloadBytes: number
  /** A larger payload is not copied and counts as lost. */
  eventBytesMax: number
  /** An event that is allocated but not committed for this long, while later ones are, was abandoned by a writer that died. */
  abandonedMs: number
  limits: RingLimits
}

const READER_DEFAULTS: ReaderOptions = {
  eventsMax: 1024,
  payloadBytes: 2 ** 22,
  eventBytesMax: 2 ** 26,
  abandonedMs: 3000,
  limits: RING_LIMITS,
}

/** `lapped`: overwritten before they were read. `uncommitted`: never committed, because their writer died; the name is printed by `ring fold`. */
export type GapCause = 'lapped' | 'uncommitted'

export type ReadResult =
  /** The batch holds new events. */
  | { kind: 'events' }
  /** Nothing new, or the next event is being written. */
  | { kind: 'idle' }
  /** Events `from` to `to` are lost; reading continues after them. */
  | { kind: 'gap'; from: number; to: number; cause: GapCause }
  /** The ring's last sequence number is below what was already read: it is another ring. */
  | { kind: 'rewound' }

export type ReaderStats = {
  /** Events returned, those with a lost payload included. */
  eventsRead: number
  /** Events never seen, the sum over all gaps. */
  eventsLost: number
  gaps: number
  payloadsLost: number
}

const EVENTS: ReadResult = { kind: 'events' }
const IDLE: ReadResult = { kind: 'idle' }
const REWOUND: ReadResult = { kind: 'rewound' }

/** Opens a ring for reading, or returns why it cannot be read. */
export function createRingReader(
  source: RingSource,
  start: RingStart | { seqno: number },
  options: Partial<ReaderOptions> = {},
): { ok: true; reader: RingReader } | RingRefusal {
  const settings = { ...READER_DEFAULTS, ...options }
  const header = new Uint8Array(HEADER_BYTES)
  source.read(0, header, 0, Math.min(HEADER_BYTES, source.sizeBytes))
  const check = checkRingHeader(header.subarray(0, source.sizeBytes), settings.limits)
  if (!check.ok) return check
  const { geometry } = check
  const bytes = ringFileBytes(geometry)
  if (!source.isStatic && source.sizeBytes < bytes) {
    return {
      ok: false,
      reason: 'too-short',
      message: `the file has ${source.sizeBytes} bytes, its header asks for ${bytes}`,
    }
  }
  let control: RingControl
  try {
    control = readControl(header)
  } catch (error) {
    return { ok: false, reason: 'geometry', message: (error as Error).message }
  }
  const state = { source, geometry, control }
  const seqno = typeof start === 'object' ? start.seqno : findStart(start, state)
  return { ok: true, reader: new RingReader(source, geometry, { seqno, lastSeqno: state.control.lastSeqno }, settings) }
}

/**
 * Reads events from a ring that another process may be writing. An event is returned only after its copy was verified: descriptors are
 * read twice (first to see that they are committed, then for their fields), and the header is read again at the end, because it shows
 * what the writer may have overwritten meanwhile. Every event is returned once or reported in exactly one gap.
 */
export class RingReader {
  readonly geometry: RingGeometry
  readonly batch: EventBatch
  /** The last event that was in the ring when it was opened. */
  readonly openedSeqno: number
  readonly stats: ReaderStats = { eventsRead: 0, eventsLost: 0, gaps: 0, payloadsLost: 0 }
  readonly #source: RingSource
  readonly #options: ReaderOptions
  readonly #payloadLimits: PayloadLimits
  readonly #header = new Uint8Array(HEADER_BYTES)
  readonly #seenBytes: Uint8Array
  readonly #seenWords: Uint32Array
  #cursor: number
  #lastSeqno = 0
  #isFinal: boolean
  #uncommittedSinceMs: number | undefined

  constructor(
    source: RingSource,
    geometry: RingGeometry,
    { seqno, lastSeqno }: { seqno: number; lastSeqno: number },
    options: ReaderOptions,
  ) {
    assert(seqno >= 1 && options.eventsMax >= 1, 'reading starts at 1 or later, with at least one event per batch')
    this.geometry = geometry
    this.#source = source
    this.#options = options
    const eventBytesMax = Math.min(options.eventBytesMax, geometry.payloadBytes)
    this.#payloadLimits = { eventBytesMax, readBytesMax: options.payloadBytes }
    this.#cursor = seqno - 1
    this.openedSeqno = lastSeqno
    this.#isFinal = source.isStatic
    const eventsMax = Math.min(options.eventsMax, geometry.capacity)
    this.batch = new EventBatch({ eventsMax, payloadBytes: options.payloadBytes })
    this.#seenBytes = new Uint8Array(eventsMax * DESCRIPTOR_BYTES)
    this.#seenWords = new Uint32Array(this.#seenBytes.buffer)
  }

  /** The last event returned or skipped. */
  get cursor(): number {
    return this.#cursor
  }

  /** How far the writer was ahead at the last poll. */
  get lagEvents(): number {
    return Math.max(0, this.#lastSeqno - this.#cursor)
  }

  /** The writer is gone: an event that is not committed now never will be. */
  finish(): void {
    this.#isFinal = true
  }

  /** Fills the batch with the next events. The time is used only to detect an abandoned event. */
  poll(nowMs: number): ReadResult {
    const next = this.#cursor + 1
    const before = this.#readControl()
    if (before.lastSeqno < this.#cursor) return REWOUND
    if (before.lastSeqno === this.#cursor) return IDLE
    if (!this.#source.isStatic && before.lastSeqno >= next + this.geometry.capacity) return this.#skipLapped()

    const seen = this.#readCommitted(next, before.lastSeqno)
    if (seen.count === 0)
      return seen.isLapped && !this.#isFinal ? this.#skipLapped() : this.#waitForCommit(nowMs, before)
    this.#uncommittedSinceMs = undefined
    const count = this.#readFields(next, seen.count)
    if (count === 0) return this.#skipLapped()

    const planned = planPayloads(this.batch, count, before.windowStart, this.#payloadLimits)
    if (planned.length > 0) {
      this.batch.reservePayload(planned.length)
      readPayload(this.#source, this.geometry, planned, this.batch.payloadBytes)
    }
    if (!this.#source.isStatic) {
      const after = this.#readControl()
      if (after.lastSeqno >= next + this.geometry.capacity) return this.#skipLapped()
      if (after.windowStart > before.windowStart) expirePayloads(this.batch, planned, after.windowStart)
    }
    this.#return(planned)
    return EVENTS
  }

  #readControl(): RingControl {
    this.#source.read(0, this.#header, 0, HEADER_BYTES)
    const control = readControl(this.#header)
    this.#lastSeqno = control.lastSeqno
    return control
  }

  /** How many descriptors from `next` on are committed. */
  #readCommitted(next: number, lastSeqno: number): { count: number; isLapped: boolean } {
    const asked = Math.min(lastSeqno - this.#cursor, this.batch.payloadAt.length)
    const range = { offset: descriptorOffset(this.geometry, next), count: asked }
    readDescriptors(this.#source, this.geometry, range, this.#seenBytes)
    const count = countInOrder(this.#seenWords, next, asked)
    const found = count === asked ? 0 : u64At(this.#seenWords, count * DESCRIPTOR_WORDS + SEQNO)
    return { count, isLapped: found > next + count }
  }

  /** Reads the descriptors again: only a read that started after the commit was seen has all fields of the event. */
  #readFields(next: number, seen: number): number {
    const { batch } = this
    if (this.#source.isStatic) {
      batch.descriptorBytes.set(this.#seenBytes.subarray(0, seen * DESCRIPTOR_BYTES))
      return seen
    }
    const range = { offset: descriptorOffset(this.geometry, next), count: seen }
    readDescriptors(this.#source, this.geometry, range, batch.descriptorBytes)
    return countInOrder(batch.descriptorWords, next, seen)
  }

  #return({ events, lost }: PayloadPlan): void {
    const { batch, stats } = this
    batch.count = events
    stats.payloadsLost += lost
    stats.eventsRead += events
    this.#cursor += events
  }

  /** An uncommitted event below allocated ones is normal for microseconds. After `abandonedMs` its writer died, and it is a gap. */
  #waitForCommit(nowMs: number, control: RingControl): ReadResult {
    if (!this.#isFinal) {
      this.#uncommittedSinceMs ??= nowMs
      if (nowMs - this.#uncommittedSinceMs < this.#options.abandonedMs) return IDLE
    }
    const found = findNextCommitted(this.#cursor + 1, { source: this.#source, geometry: this.geometry, control })
    // While no later event is committed either, the writer may be slow or paused.
    if (found > control.lastSeqno && !this.#isFinal) return IDLE
    this.#uncommittedSinceMs = undefined
    return this.#skipTo(found, 'uncommitted')
  }

  /** The writer has overtaken the reader by a full ring: continue with the newest block. */
  #skipLapped(): ReadResult {
    const control = this.#readControl()
    if (control.lastSeqno < this.#cursor) return REWOUND
    const state = { source: this.#source, geometry: this.geometry, control }
    const next = this.#isFinal ? findNextCommitted(this.#cursor + 1, state) : findStart('newest-block', state)
    // The next event may be the newest one; then the next poll reads it again.
    return next > this.#cursor + 1 ? this.#skipTo(next, 'lapped') : IDLE
  }

  #skipTo(seqno: number, cause: GapCause): ReadResult {
    const from = this.#cursor + 1
    const to = seqno - 1
    this.#cursor = to
    this.stats.gaps += 1
    this.stats.eventsLost += to - from + 1
    return { kind: 'gap', from, to, cause }
  }
}

/** How many of the first descriptors hold `seqno` and the numbers after it. Halves are compared as signed integers, which is the fastest. */
function countInOrder(words: Uint32Array, seqno: number, length: number): number {
  let low = lowHalf(seqno) | 0
  let high = highHalf(seqno) | 0
  let count = 0
  for (let at = 0; count < length; at += DESCRIPTOR_WORDS) {
    if (((words[at + SEQNO] as number) | 0) !== low || ((words[at + SEQNO + 1] as number) | 0) !== high) break
    count += 1
    low = (low + 1) | 0
    if (low === 0) high += 1
  }
  return count
}
