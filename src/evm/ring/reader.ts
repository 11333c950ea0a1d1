import assert from 'node:assert/strict'
import { EventBatch, highHalf, lowHalf, u64At } from './event-batch.ts'
import {
  checkRingHeader,
  DESCRIPTOR_BYTES,
  HEADER_BYTES,
  RING_LIMITS,
  type RingControl,
  type RingGeometry,
  type RingLimits,
  type RingRefusal,
  readControl,
  ringFileBytes,
  slotPosition,
} from './layout.ts'
import { expirePayloads, type PayloadPlan, type PayloadRoom, planPayloads } from './payload-plan.ts'
import { findNextCommitted, findStart, type RingStart } from './position.ts'
import { type RingSource, readPayload, readSlots } from './source.ts'

const DESCRIPTOR_WORDS = DESCRIPTOR_BYTES / 4

export type ReaderOptions = {
  /** Descriptors in one batch. 1,024 with their payloads stay in the processor's cache until they are folded; more are slower. */
  eventsMax: number
  /** Payload bytes in one batch; a single larger event still gets through. */
  payloadBytes: number
  /** A larger payload is not copied and counts as lost. */
  eventBytesMax: number
  /** A slot that stays empty this long while later ones are filled was left by a writer that died. */
  deadSlotMs: number
  limits: RingLimits
}

const READER_DEFAULTS: ReaderOptions = {
  eventsMax: 1024,
  payloadBytes: 2 ** 22,
  eventBytesMax: 2 ** 26,
  deadSlotMs: 3000,
  limits: RING_LIMITS,
}

export type ReadResult =
  /** The batch holds new events. */
  | { kind: 'events' }
  /** Nothing new, or the next event is being written. */
  | { kind: 'idle' }
  /** Events `from` to `to` are lost; reading goes on behind them. */
  | { kind: 'gap'; from: number; to: number; cause: 'lapped' | 'dead-slot' }
  /** The ring counts below what was read already: it is another ring now. */
  | { kind: 'rewound' }

export type ReaderStats = {
  /** Events handed out, those with a lost payload included. */
  eventsRead: number
  /** Events never seen, the sum over all gaps. */
  eventsLost: number
  gaps: number
  payloadsLost: number
}

const EVENTS: ReadResult = { kind: 'events' }
const IDLE: ReadResult = { kind: 'idle' }
const REWOUND: ReadResult = { kind: 'rewound' }

/** Opens a ring for reading, or says why it cannot be read. */
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
  const position = { source, geometry, control: readControl(header) }
  const seqno = typeof start === 'object' ? start.seqno : findStart(start, position)
  return { ok: true, reader: new RingReader(source, geometry, seqno, settings) }
}

/**
 * Takes events out of a ring that somebody else may be writing. Nothing is handed out unless it was proven whole after it was copied:
 * descriptors are read twice (once to see them committed, once for their fields), and the header is read again at the end, because
 * it shows what the writer may have touched meanwhile. Every event is handed out once or reported in exactly one gap.
 */
export class RingReader {
  readonly geometry: RingGeometry
  readonly batch: EventBatch
  readonly stats: ReaderStats = { eventsRead: 0, eventsLost: 0, gaps: 0, payloadsLost: 0 }
  readonly #source: RingSource
  readonly #options: ReaderOptions
  readonly #room: PayloadRoom
  readonly #header = new Uint8Array(HEADER_BYTES)
  readonly #seenBytes: Uint8Array
  readonly #seenWords: Uint32Array
  #cursor: number
  #lastSeqno = 0
  #isFinal: boolean
  #holeSinceMs: number | undefined

  constructor(source: RingSource, geometry: RingGeometry, seqno: number, options: ReaderOptions) {
    assert(seqno >= 1 && options.eventsMax >= 1, 'reading begins at 1 or later, one event at a time or more')
    this.geometry = geometry
    this.#source = source
    this.#options = options
    const eventBytesMax = Math.min(options.eventBytesMax, geometry.payloadBytes)
    this.#room = { eventBytesMax, readBytesMax: options.payloadBytes }
    this.#cursor = seqno - 1
    this.#isFinal = source.isStatic
    const eventsMax = Math.min(options.eventsMax, geometry.capacity)
    this.batch = new EventBatch({ eventsMax, payloadBytes: options.payloadBytes })
    this.#seenBytes = new Uint8Array(eventsMax * DESCRIPTOR_BYTES)
    this.#seenWords = new Uint32Array(this.#seenBytes.buffer)
  }

  /** The last event handed out or given up. */
  get cursor(): number {
    return this.#cursor
  }

  /** How far the writer was ahead at the last look. */
  get lagEvents(): number {
    return Math.max(0, this.#lastSeqno - this.#cursor)
  }

  /** The writer is gone: an event that is not there now will never come. */
  finish(): void {
    this.#isFinal = true
  }

  /** Fills the batch with the next events. Time is needed only to tell a slot being written from one abandoned. */
  poll(nowMs: number): ReadResult {
    const shortage = this.#cursor + 1
    const before = this.#readControl()
    if (before.lastSeqno < this.#cursor) return REWOUND
    if (before.lastSeqno === this.#cursor) return IDLE
    if (!this.#source.isStatic && before.lastSeqno >= shortage + this.geometry.capacity) return this.#skipLapped()

    const seen = this.#readCommitted(shortage, before.lastSeqno)
    if (seen.count === 0) return seen.isLapped && !this.#isFinal ? this.#skipLapped() : this.#waitForHole(nowMs, before)
    this.#holeSinceMs = undefined
    const count = this.#readFields(shortage, seen.count)
    if (count === 0) return this.#skipLapped()

    const planned = planPayloads(this.batch, count, before.windowStart, this.#room)
    if (planned.length > 0) {
      this.batch.reservePayload(planned.length)
      readPayload(this.#source, this.geometry, planned, this.batch.payloadBytes)
    }
    if (!this.#source.isStatic) {
      const after = this.#readControl()
      if (after.lastSeqno >= shortage + this.geometry.capacity) return this.#skipLapped()
      if (after.windowStart > before.windowStart) expirePayloads(this.batch, planned, after.windowStart)
    }
    this.#handOut(planned)
    return EVENTS
  }

  #readControl(): RingControl {
    this.#source.read(0, this.#header, 0, HEADER_BYTES)
    const control = readControl(this.#header)
    this.#lastSeqno = control.lastSeqno
    return control
  }

  /** How many slots from `want` on hold the event they should. */
  #readCommitted(shortage: number, lastSeqno: number): { count: number; isLapped: boolean } {
    const asked = Math.min(lastSeqno - this.#cursor, this.batch.payloadAt.length)
    const range = { slotPosition: slotPosition(this.geometry, shortage), count: asked }
    readSlots(this.#source, this.geometry, range, this.#seenBytes)
    const count = countInOrder(this.#seenWords, shortage, asked)
    const found = count === asked ? 0 : u64At(this.#seenWords, count * DESCRIPTOR_WORDS)
    return { count, isLapped: found > shortage + count }
  }

  /** Reads the descriptors again: only a read that began after the commit was seen has all fields of the event. */
  #readFields(shortage: number, seen: number): number {
    const { batch } = this
    if (this.#source.isStatic) {
      batch.descriptorBytes.set(this.#seenBytes.subarray(0, seen * DESCRIPTOR_BYTES))
      return seen
    }
    const range = { slotPosition: slotPosition(this.geometry, shortage), count: seen }
    readSlots(this.#source, this.geometry, range, batch.descriptorBytes)
    return countInOrder(batch.descriptorWords, shortage, seen)
  }

  #handOut({ events, lost }: PayloadPlan): void {
    const { batch, stats } = this
    batch.count = events
    stats.payloadsLost += lost
    stats.eventsRead += events
    this.#cursor += events
  }

  /** An empty slot below allocated ones is normal for microseconds. Beyond that its writer died, and it is a gap. */
  #waitForHole(nowMs: number, control: RingControl): ReadResult {
    if (!this.#isFinal) {
      this.#holeSinceMs ??= nowMs
      if (nowMs - this.#holeSinceMs < this.#options.deadSlotMs) return IDLE
    }
    const next = findNextCommitted(this.#cursor + 1, { source: this.#source, geometry: this.geometry, control })
    // While nothing later is committed either, the writer may just be slow, or paused.
    if (next > control.lastSeqno && !this.#isFinal) return IDLE
    this.#holeSinceMs = undefined
    return this.#skipTo(next, 'dead-slot')
  }

  /** The ring has gone round past the reader: begin again with the newest block that can be had whole. */
  #skipLapped(): ReadResult {
    const control = this.#readControl()
    if (control.lastSeqno < this.#cursor) return REWOUND
    const position = { source: this.#source, geometry: this.geometry, control }
    const next = this.#isFinal ? findNextCommitted(this.#cursor + 1, position) : findStart('newest-block', position)
    // The event wanted now may be the newest there is; then it is looked at again at the next poll.
    return next > this.#cursor + 1 ? this.#skipTo(next, 'lapped') : IDLE
  }

  #skipTo(seqno: number, cause: 'lapped' | 'dead-slot'): ReadResult {
    const from = this.#cursor + 1
    const to = seqno - 1
    this.#cursor = to
    this.stats.gaps += 1
    this.stats.eventsLost += to - from + 1
    return { kind: 'gap', from, to, cause }
  }
}

/** How many of the first descriptors hold `seqno` and the numbers after it. Halves are compared as signed ones, which is the cheapest. */
function countInOrder(words: Uint32Array, seqno: number, length: number): number {
  let low = lowHalf(seqno) | 0
  let high = highHalf(seqno) | 0
  let count = 0
  for (let at = 0; count < length; at += DESCRIPTOR_WORDS) {
    if (((words[at] as number) | 0) !== low || ((words[at + 1] as number) | 0) !== high) break
    count += 1
    low = (low + 1) | 0
    if (low === 0) high += 1
  }
  return count
}
