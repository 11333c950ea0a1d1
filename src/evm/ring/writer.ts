import assert from 'node:assert/strict'
import { encodePayload } from '../event/payload-layout.ts'
import { PAYLOADS, RECORD_ERROR_TYPE } from '../event/payloads.ts'
import { EVENT } from '../event/type.ts'
import { toHex } from '../hex.ts'
import {
  alignPayload,
  DESCRIPTOR,
  DESCRIPTOR_BYTES,
  descriptorIndex,
  descriptorOffset,
  HEADER,
  payloadSectionOffset,
  type RingControl,
  type RingGeometry,
  SECTION_BYTES,
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
  /** Differs from the format's own value only in tests of very small rings. */
  windowStepBytes?: number
  /** Initial counters; zero in a new ring. */
  control?: RingControl
}

/** Size of a RECORD_ERROR with the truncated payload of the dropped event. Format section "RECORD_ERROR". */
const RECORD_ERROR_BYTES = 8192
const ALLOCATION_MAX = 2 ** 32 - 1

/** A group is small compared with the smallest ring, so that recording it does not overtake readers that keep up. */
const GROUP_EVENTS_MAX = 4096
const GROUP_BYTES_MAX = 2 ** 22

/**
 * Writes events into a ring that other processes read at the same time. The order of writes is what makes reading safe: counters first,
 * then the sequence numbers of the old descriptors are zeroed, then the window moves, then payloads and fields are written, and the new
 * sequence numbers come last.
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

  /** Records events in groups. A group takes six writes for any number of events and becomes readable as a whole. */
  recordAll(events: readonly RingEvent[]): void {
    for (let from = 0; from < events.length; ) {
      const to = this.#groupEnd(events, from)
      const steps = this.steps(events.slice(from, to))
      while (steps.next().done !== true);
      from = to
    }
  }

  /**
   * Records one group and yields after each write, so that tests can read between two writes. Sequence numbers are allocated at the
   * first step, so interleaved generators act like several threads of one node.
   */
  *steps(given: readonly RingEvent[]): Generator<void, void, void> {
    if (given.length === 0) return
    assert(given.length <= this.geometry.capacity, 'a group fits the descriptor array')
    const events = given.map((event) => this.#replaceOversized(event))
    const control = this.#control
    const firstSeqno = control.lastSeqno + 1
    const firstOffset = control.nextPayloadByte
    const payloads = joinPayloads(events)
    assert(payloads.length < this.#payloadMax(), 'a group fits the payload window')
    control.lastSeqno += events.length
    control.nextPayloadByte += payloads.length
    this.#writeCounters()
    yield

    const descriptors = encodeDescriptors(events, firstSeqno, firstOffset)
    yield* this.#clearDescriptors(firstSeqno, descriptors)

    const end = firstOffset + payloads.length
    if (end - control.windowStart > this.geometry.payloadBytes - this.#windowStepBytes) {
      const step = this.#windowStepBytes
      control.windowStart = Math.ceil(end / step) * step - (this.geometry.payloadBytes - step)
      this.#writeWindowStart()
      yield
    }
    yield* this.#writePayloads(firstOffset, payloads)
    yield* this.#commitDescriptors(firstSeqno, descriptors)
  }

  /** Allocates sequence numbers that get no event. Readers report them as lost, once one is `abandonedMs` old and there is a later event. */
  leaveOut(count: number): void {
    assert(count <= this.geometry.capacity / 2, 'the events before are still readable')
    this.#control.lastSeqno += count
    this.#writeCounters()
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

  /** Zeroes the sequence numbers of the old events. A positional write also writes the new fields, without their numbers. */
  *#clearDescriptors(firstSeqno: number, descriptors: Uint8Array): Generator<void, void, void> {
    const { storeU64 } = this.#target
    if (storeU64 === undefined) {
      const cleared = descriptors.slice()
      for (let at = 0; at < cleared.length; at += DESCRIPTOR_BYTES)
        cleared.fill(0, at + DESCRIPTOR.seqno, at + DESCRIPTOR.seqno + 8)
      yield* this.#writeDescriptors(firstSeqno, cleared)
      return
    }
    for (let at = 0; at < descriptors.length; at += DESCRIPTOR_BYTES) {
      storeU64(descriptorOffset(this.geometry, firstSeqno + at / DESCRIPTOR_BYTES), 0)
      yield
    }
  }

  /** The sequence numbers are written last: they make the events readable. */
  *#commitDescriptors(firstSeqno: number, descriptors: Uint8Array): Generator<void, void, void> {
    const { storeU64 } = this.#target
    if (storeU64 === undefined) return yield* this.#writeDescriptors(firstSeqno, descriptors)
    for (let at = 0; at < descriptors.length; at += DESCRIPTOR_BYTES) {
      const seqno = firstSeqno + at / DESCRIPTOR_BYTES
      const offset = descriptorOffset(this.geometry, seqno)
      this.#target.write(offset + DESCRIPTOR.type, descriptors.subarray(at + DESCRIPTOR.type, at + DESCRIPTOR_BYTES))
      storeU64(offset + DESCRIPTOR.seqno, seqno)
      yield
    }
  }

  *#writeDescriptors(firstSeqno: number, descriptors: Uint8Array): Generator<void, void, void> {
    const from = descriptorIndex(this.geometry, firstSeqno) * DESCRIPTOR_BYTES
    const toEnd = Math.min(descriptors.length, this.geometry.capacity * DESCRIPTOR_BYTES - from)
    this.#target.write(SECTION_BYTES + from, descriptors.subarray(0, toEnd))
    yield
    if (toEnd === descriptors.length) return
    this.#target.write(SECTION_BYTES, descriptors.subarray(toEnd))
    yield
  }

  *#writePayloads(firstOffset: number, payloads: Uint8Array): Generator<void, void, void> {
    if (payloads.length === 0) return
    const sectionOffset = payloadSectionOffset(this.geometry)
    const at = firstOffset % this.geometry.payloadBytes
    const toEnd = Math.min(payloads.length, this.geometry.payloadBytes - at)
    this.#target.write(sectionOffset + at, payloads.subarray(0, toEnd))
    yield
    if (toEnd === payloads.length) return
    this.#target.write(sectionOffset, payloads.subarray(toEnd))
    yield
  }

  /** Payloads stay below this, so that readers can copy them before they expire. */
  #payloadMax(): number {
    return this.geometry.payloadBytes - 2 * this.#windowStepBytes
  }

  #replaceOversized(event: RingEvent): RingEvent {
    const allocation = alignPayload(event.payload.length)
    const isTooLong = allocation > ALLOCATION_MAX
    if (!isTooLong && allocation < this.#payloadMax()) return event
    const payload = encodePayload(PAYLOADS.RECORD_ERROR, {
      error_type: isTooLong ? RECORD_ERROR_TYPE.payloadOver4GiB : RECORD_ERROR_TYPE.payloadWouldExpire,
      dropped_event_type: event.type,
      requested_payload_size: BigInt(event.payload.length),
      truncated_payload: toHex(event.payload, 0, RECORD_ERROR_BYTES - PAYLOADS.RECORD_ERROR.bytes),
    })
    return { ...event, type: EVENT.RECORD_ERROR, payload }
  }
}

/** The payloads in a row, each padded to the allocation step. */
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

function encodeDescriptors(events: readonly RingEvent[], firstSeqno: number, firstOffset: number): Uint8Array {
  const descriptors = new Uint8Array(events.length * DESCRIPTOR_BYTES)
  const view = new DataView(descriptors.buffer)
  let offset = firstOffset
  for (const [at, event] of events.entries()) {
    const from = at * DESCRIPTOR_BYTES
    setU64(view, from + DESCRIPTOR.seqno, firstSeqno + at)
    view.setUint16(from + DESCRIPTOR.type, event.type, true)
    view.setUint32(from + DESCRIPTOR.payloadSize, event.payload.length, true)
    view.setBigUint64(from + DESCRIPTOR.timeNs, event.timeNs, true)
    setU64(view, from + DESCRIPTOR.payloadOffset, offset)
    setU64(view, from + DESCRIPTOR.blockSeqno, event.blockSeqno)
    setU64(view, from + DESCRIPTOR.txnId, event.txnIndex + 1)
    setU64(view, from + DESCRIPTOR.accountIndex, event.accountIndex)
    offset += alignPayload(event.payload.length)
  }
  return descriptors
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
