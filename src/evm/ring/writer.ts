import assert from 'node:assert/strict'
import { EVENT } from '../event/type.ts'
import {
  alignPayload,
  DESCRIPTOR_BYTES,
  HEADER,
  payloadSectionPosition,
  type RingControl,
  type RingGeometry,
  SECTION_BYTES,
  slotIndex,
  slotPosition,
  WINDOW_STEP_BYTES,
} from './layout.ts'
import type { RingTarget } from './source.ts'

/** One event to be recorded. */
export type RingEvent = {
  type: number
  payload: Uint8Array
  /** Wall clock in nanoseconds since 1970. */
  timeNs: bigint
  /** Sequence number of the BLOCK_START it belongs to, its own for a BLOCK_START; 0 outside a block. */
  blockSeqno: number
  /** Index of the transaction, -1 outside of one. */
  txnIndex: number
  accountIndex: number
}

export type WriterOptions = {
  geometry: RingGeometry
  /** Other than the format's own only in tests of very small rings. */
  windowStepBytes?: number
  /** Where the counters stand; zero in a new ring. */
  control?: RingControl
}

/** A dropped event leaves this much of itself behind, the 16 bytes of the error included. Format section "RECORD_ERROR". */
const RECORD_ERROR_BYTES = 8192
const RECORD_ERROR_FIXED_BYTES = 16
const ALLOCATION_MAX = 2 ** 32 - 1

/** A group is small beside the smallest ring, so that recording it does not run over readers that keep up. */
const GROUP_EVENTS_MAX = 4096
const GROUP_BYTES_MAX = 2 ** 22

/**
 * Writes events into a ring that others read at the same time. Order is everything: counters first, then the slots are emptied, then
 * the window is moved, then payloads and fields are written, and the sequence numbers come last.
 */
export class RingWriter {
  readonly geometry: RingGeometry
  readonly #target: RingTarget
  readonly #windowStepBytes: number
  readonly #control: RingControl

  constructor({ geometry, windowStepBytes = WINDOW_STEP_BYTES, control }: WriterOptions, target: RingTarget) {
    assert(windowStepBytes * 2 < geometry.payloadBytes, 'the window is wider than two of its steps')
    this.geometry = geometry
    this.#target = target
    this.#windowStepBytes = windowStepBytes
    this.#control = { ...(control ?? { lastSeqno: 0, nextPayloadByte: 0, windowStart: 0 }) }
    if (control !== undefined) {
      this.#writeCounters()
      this.#writeWindowStart()
    }
  }

  get lastSeqno(): number {
    return this.#control.lastSeqno
  }

  get control(): Readonly<RingControl> {
    return this.#control
  }

  /** Records one event and returns its sequence number. */
  record(event: RingEvent): number {
    this.recordAll([event])
    return this.#control.lastSeqno
  }

  /** Records events in groups. A group costs six writes however many events it has, and becomes readable in one go. */
  recordAll(events: readonly RingEvent[]): void {
    for (let from = 0; from < events.length; ) {
      const to = this.#groupEnd(events, from)
      const steps = this.steps(events.slice(from, to))
      while (steps.next().done !== true);
      from = to
    }
  }

  /**
   * Records one group, stopping after each write: what a reader may find between two of them is what tests are about. Numbers are taken at
   * the first step, so several of these interleaved are several threads of one node.
   */
  *steps(given: readonly RingEvent[]): Generator<void, void, void> {
    if (given.length === 0) return
    assert(given.length <= this.geometry.capacity, 'events recorded together fit the descriptor array')
    const events = given.map((event) => this.#replaceOversized(event))
    const control = this.#control
    const firstSeqno = control.lastSeqno + 1
    const firstOffset = control.nextPayloadByte
    const payloads = joinPayloads(events)
    assert(payloads.length < this.#payloadMax(), 'events recorded together fit the payload window')
    control.lastSeqno += events.length
    control.nextPayloadByte += payloads.length
    this.#writeCounters()
    yield

    const slots = encodeSlots(events, firstSeqno, firstOffset)
    yield* this.#emptySlots(firstSeqno, slots)

    const end = firstOffset + payloads.length
    if (end - control.windowStart > this.geometry.payloadBytes - this.#windowStepBytes) {
      const step = this.#windowStepBytes
      control.windowStart = Math.ceil(end / step) * step - (this.geometry.payloadBytes - step)
      this.#writeWindowStart()
      yield
    }
    yield* this.#writePayloads(firstOffset, payloads)
    yield* this.#commitSlots(firstSeqno, slots)
  }

  #groupEnd(events: readonly RingEvent[], from: number): number {
    const eventsMax = Math.min(GROUP_EVENTS_MAX, this.geometry.capacity / 2)
    let bytes = 0
    let to = from
    for (; to < events.length && to - from < eventsMax; to++) {
      bytes += alignPayload((events[to] as RingEvent).payload.length)
      if (to > from && bytes > Math.min(GROUP_BYTES_MAX, this.#payloadMax() / 2)) break
    }
    return to
  }

  #writeCounters(): void {
    const { lastSeqno, nextPayloadByte } = this.#control
    const { storeU64 } = this.#target
    if (storeU64 === undefined) return this.#target.write(HEADER.lastSeqno, encodeU64s(lastSeqno, nextPayloadByte))
    storeU64(HEADER.lastSeqno, lastSeqno)
    storeU64(HEADER.nextPayloadByte, nextPayloadByte)
  }

  #writeWindowStart(): void {
    const { windowStart } = this.#control
    const { storeU64 } = this.#target
    if (storeU64 === undefined) this.#target.write(HEADER.windowStart, encodeU64s(windowStart))
    else storeU64(HEADER.windowStart, windowStart)
  }

  /** Takes the old events out of their slots. Positional writes put the new fields there at once, still without a number. */
  *#emptySlots(firstSeqno: number, slots: Uint8Array): Generator<void, void, void> {
    const { storeU64 } = this.#target
    if (storeU64 === undefined) {
      const empty = slots.slice()
      for (let at = 0; at < empty.length; at += DESCRIPTOR_BYTES) empty.fill(0, at, at + 8)
      yield* this.#writeSlots(firstSeqno, empty)
      return
    }
    for (let at = 0; at < slots.length; at += DESCRIPTOR_BYTES) {
      storeU64(slotPosition(this.geometry, firstSeqno + at / DESCRIPTOR_BYTES), 0)
      yield
    }
  }

  /** The numbers come last: with them the events are there. */
  *#commitSlots(firstSeqno: number, slots: Uint8Array): Generator<void, void, void> {
    const { storeU64 } = this.#target
    if (storeU64 === undefined) return yield* this.#writeSlots(firstSeqno, slots)
    for (let at = 0; at < slots.length; at += DESCRIPTOR_BYTES) {
      const seqno = firstSeqno + at / DESCRIPTOR_BYTES
      const position = slotPosition(this.geometry, seqno)
      this.#target.write(position + 8, slots.subarray(at + 8, at + DESCRIPTOR_BYTES))
      storeU64(position, seqno)
      yield
    }
  }

  *#writeSlots(firstSeqno: number, slots: Uint8Array): Generator<void, void, void> {
    const position = slotIndex(this.geometry, firstSeqno) * DESCRIPTOR_BYTES
    const toEnd = Math.min(slots.length, this.geometry.capacity * DESCRIPTOR_BYTES - position)
    this.#target.write(SECTION_BYTES + position, slots.subarray(0, toEnd))
    yield
    if (toEnd === slots.length) return
    this.#target.write(SECTION_BYTES, slots.subarray(toEnd))
    yield
  }

  *#writePayloads(firstOffset: number, payloads: Uint8Array): Generator<void, void, void> {
    if (payloads.length === 0) return
    const sectionPosition = payloadSectionPosition(this.geometry)
    const at = firstOffset % this.geometry.payloadBytes
    const toEnd = Math.min(payloads.length, this.geometry.payloadBytes - at)
    this.#target.write(sectionPosition + at, payloads.subarray(0, toEnd))
    yield
    if (toEnd === payloads.length) return
    this.#target.write(sectionPosition, payloads.subarray(toEnd))
    yield
  }

  /** A payload must stay below this, or readers could never copy it before it expires. */
  #payloadMax(): number {
    return this.geometry.payloadBytes - 2 * this.#windowStepBytes
  }

  #replaceOversized(event: RingEvent): RingEvent {
    const allocation = alignPayload(event.payload.length)
    const isTooLong = allocation > ALLOCATION_MAX
    if (!isTooLong && allocation < this.#payloadMax()) return event
    const kept = RECORD_ERROR_BYTES - RECORD_ERROR_FIXED_BYTES
    const payload = new Uint8Array(RECORD_ERROR_BYTES)
    const view = new DataView(payload.buffer)
    view.setUint16(0, isTooLong ? 1 : 2, true)
    view.setUint16(2, event.type, true)
    view.setUint32(4, kept, true)
    view.setBigUint64(8, BigInt(event.payload.length), true)
    payload.set(event.payload.subarray(0, kept), RECORD_ERROR_FIXED_BYTES)
    return { ...event, type: EVENT.RECORD_ERROR, payload }
  }
}

/** The payloads one after the other, each rounded up to the allocation step. */
function joinPayloads(events: readonly RingEvent[]): Uint8Array {
  let bytes = 0
  for (const { payload } of events) bytes += alignPayload(payload.length)
  const joined = new Uint8Array(bytes)
  let at = 0
  for (const { payload } of events) {
    joined.set(payload, at)
    at += alignPayload(payload.length)
  }
  return joined
}

function encodeSlots(events: readonly RingEvent[], firstSeqno: number, firstOffset: number): Uint8Array {
  const slots = new Uint8Array(events.length * DESCRIPTOR_BYTES)
  const view = new DataView(slots.buffer)
  let offset = firstOffset
  for (const [at, event] of events.entries()) {
    const slot = at * DESCRIPTOR_BYTES
    const seqno = firstSeqno + at
    setU64(view, slot, seqno)
    view.setUint16(slot + 8, event.type, true)
    view.setUint32(slot + 12, event.payload.length, true)
    view.setBigUint64(slot + 16, event.timeNs, true)
    setU64(view, slot + 24, offset)
    setU64(view, slot + 32, event.blockSeqno)
    setU64(view, slot + 40, event.txnIndex + 1)
    setU64(view, slot + 48, event.accountIndex)
    offset += alignPayload(event.payload.length)
  }
  return slots
}

function encodeU64s(...values: number[]): Uint8Array {
  const bytes = new Uint8Array(values.length * 8)
  const view = new DataView(bytes.buffer)
  for (const [at, value] of values.entries()) setU64(view, at * 8, value)
  return bytes
}

function setU64(view: DataView, at: number, value: number): void {
  view.setUint32(at, value >>> 0, true)
  view.setUint32(at + 4, Math.floor(value / 2 ** 32), true)
}
