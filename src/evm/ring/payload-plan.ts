import { type EventBatch, isAligned, PAYLOAD_LOST, u64At } from './event-batch.ts'
import { DESCRIPTOR_BYTES } from './layout.ts'

const DESCRIPTOR_WORDS = DESCRIPTOR_BYTES / 4

/** Leading events of a batch, the range that holds their payloads, and how many of these are gone. */
export type PayloadPlan = { events: number; offset: number; length: number; lost: number }

export type PayloadRoom = {
  /** A larger payload is not copied and counts as lost. */
  readonly eventBytesMax: number
  /** Bytes in one read; a single larger payload still gets through. */
  readonly readBytesMax: number
}

/**
 * Chooses the leading events whose payloads fit one read, and where each payload will lie. Offsets come from a counter of their own
 * and need not grow with the sequence number, so the range is that of the smallest and the largest.
 */
export function planPayloads(batch: EventBatch, count: number, windowStart: number, room: PayloadRoom): PayloadPlan {
  const { payloadAt, descriptorWords: words } = batch
  const { eventBytesMax, readBytesMax } = room
  // Places are counted from the first payload there is; a later one may lie below it. Until there is one, from the very start.
  let first = 0
  let firstLow = 0
  let firstHigh = 0
  let windowAt = windowStart
  let low = 0
  let high = 0
  let lost = 0
  let events = 0
  for (let at = 0; events < count; events++, at += DESCRIPTOR_WORDS) {
    const size = words[at + 3] as number
    if (size === 0) {
      payloadAt[events] = 0
      continue
    }
    const offsetLow = words[at + 6] as number
    const offsetHigh = words[at + 7] as number
    // Mostly the upper halves are equal, and numbers of 32 bits are enough.
    let position = offsetHigh === firstHigh ? offsetLow - firstLow : u64At(words, at + 6) - first
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

/** Loaded after the copy, the start of the window tells which payloads the writer may have run over. */
export function expirePayloads(batch: EventBatch, planned: PayloadPlan, windowStart: number): void {
  for (let at = 0; at < planned.events; at++) {
    if (batch.payloadOffset(at) >= windowStart || batch.payloadSize(at) === 0) continue
    if (batch.payloadAt[at] !== PAYLOAD_LOST) planned.lost += 1
    batch.payloadAt[at] = PAYLOAD_LOST
  }
}
