import { type EventBatch, isAligned, PAYLOAD_LOST, u64At } from './event-batch.ts'
import { DESCRIPTOR, DESCRIPTOR_BYTES } from './layout.ts'

const DESCRIPTOR_WORDS = DESCRIPTOR_BYTES / 4
const PAYLOAD_SIZE = DESCRIPTOR.payloadSize / 4
const PAYLOAD_OFFSET = DESCRIPTOR.payloadOffset / 4

/** Leading events of a batch, the range of payload bytes to read for them, and how many payloads are lost. */
export type PayloadPlan = { events: number; offset: number; length: number; lost: number }

export type PayloadLimits = {
  /** A larger payload is not copied and counts as lost. */
  readonly eventBytesMax: number
  /** Bytes in one read; a single larger payload is still read. */
  readonly readBytesMax: number
}

/**
 * Selects the leading events whose payloads fit one read, and the index of each payload in the batch memory. Payload offsets come from
 * a separate counter and need not grow with the sequence number, so the range spans the smallest and the largest.
 */
export function planPayloads(
  batch: EventBatch,
  count: number,
  windowStart: number,
  limits: PayloadLimits,
): PayloadPlan {
  const { payloadAt, descriptorWords: words } = batch
  const { eventBytesMax, readBytesMax } = limits
  // Positions are relative to the first payload; a later payload may be below it. Before the first one they are absolute.
  let first = 0
  let firstLow = 0
  let firstHigh = 0
  let windowAt = windowStart
  let low = 0
  let high = 0
  let lost = 0
  let events = 0
  for (let at = 0; events < count; events++, at += DESCRIPTOR_WORDS) {
    const size = words[at + PAYLOAD_SIZE] as number
    if (size === 0) {
      payloadAt[events] = 0
      continue
    }
    const offsetLow = words[at + PAYLOAD_OFFSET] as number
    const offsetHigh = words[at + PAYLOAD_OFFSET + 1] as number
    // In most cases the upper halves are equal, and 32-bit arithmetic is enough.
    let position = offsetHigh === firstHigh ? offsetLow - firstLow : u64At(words, at + PAYLOAD_OFFSET) - first
    if (size > eventBytesMax || position < windowAt || !isAligned(offsetLow)) {
      payloadAt[events] = PAYLOAD_LOST
      lost += 1
      continue
    }
    if (high === 0) {
      first = position
      firstLow = offsetLow
      firstHigh = offsetHigh
      windowAt = windowStart - first
      position = 0
    }
    const newLow = position < low ? position : low
    const newHigh = position + size > high ? position + size : high
    if (high > 0 && newHigh - newLow > readBytesMax) break
    low = newLow
    high = newHigh
    payloadAt[events] = position
  }
  if (low < 0) movePayloads(batch, events, -low)
  return { events, offset: first + low, length: high - low, lost }
}

function movePayloads(batch: EventBatch, events: number, by: number): void {
  for (let at = 0; at < events; at++) {
    const position = batch.payloadAt[at] as number
    if (batch.payloadSize(at) > 0 && position !== PAYLOAD_LOST) batch.payloadAt[at] = position + by
  }
}

/** Read after the copy, the start of the window shows which payloads the writer may have overwritten meanwhile. */
export function expirePayloads(batch: EventBatch, planned: PayloadPlan, windowStart: number): void {
  for (let at = 0; at < planned.events; at++) {
    if (batch.payloadOffset(at) >= windowStart || batch.payloadSize(at) === 0) continue
    if (batch.payloadAt[at] !== PAYLOAD_LOST) planned.lost += 1
    batch.payloadAt[at] = PAYLOAD_LOST
  }
}
