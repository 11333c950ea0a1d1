import { recordOf } from '../../core/records.ts'
import { USAGE_INTERFACES } from './counter.ts'

/**
 * The usage of one thread on its way to the main thread, in memory that both share. The thread is the only writer and the main thread the only
 * reader of the events; neither waits for the other.
 *
 *     header   Int32: see HEADER
 *     events   EVENT_BYTES each, written in turn: meter number u32, method number u16, interface u8, kind and hour u8, units f64
 *     meters   METER_BYTES each: version i32, lengths of both ids u8, and then the ids of subscription and token
 *     methods  where each name ends i32, in the names; then the names
 *
 * An event is visible to the reader with everything it refers to when `written` is stored after it, and its place and its meter number may be used
 * again when `read` is stored after it.
 */
export const EVENTS = 65_536
export const EVENT_BYTES = 16
/** More than there are events, so there is always one that no unread event refers to. */
export const METERS = 2 * EVENTS
export const METER_BYTES = 128
export const METER_IDS_AT = 8
export const METER_IDS_BYTES_MAX = METER_BYTES - METER_IDS_AT
/** Names of methods, and their bytes together; further ones count as `other`, the method with number 0. */
export const METHODS_MAX = 4096
const METHOD_BYTES = 64 * METHODS_MAX

/** Events read and events written are in different lines of the processor's cache. */
export const HEADER = { written: 0, read: 16 } as const
const HEADER_BYTES = 128

/** What an event adds: a call with its units, a refused call, a call that is reverted; or sums of many calls, or of bytes. */
export const EVENT = { admitted: 0, refused: 1, refunded: 2, calls: 3, units: 4, refusals: 5, bytes: 6 } as const
export type UsageEvent = (typeof EVENT)[keyof typeof EVENT]

const KIND_BITS = 3
const HOURS = 2 ** (8 - KIND_BITS)

export const INTERFACE_INDEX = recordOf(USAGE_INTERFACES, (_name, at) => at)

/** Kind and hour in one byte: the hour in the lowest bits of its number. */
export function packKind(kind: UsageEvent, hour: number): number {
  return kind | ((hour % HOURS) << KIND_BITS)
}

export function kindOf(packed: number): UsageEvent {
  return (packed & (2 ** KIND_BITS - 1)) as UsageEvent
}

/** The hour nearest to now that has these lowest bits: events are read within a moment, at most some hours late. */
export function hourOf(packed: number, hourNow: number): number {
  const later = ((packed >>> KIND_BITS) - (hourNow % HOURS) + HOURS) % HOURS
  return hourNow + (later < HOURS / 2 ? later : later - HOURS)
}

export type UsageEventArrays = {
  readonly header: Int32Array
  readonly eventU32: Uint32Array
  readonly eventU16: Uint16Array
  readonly eventU8: Uint8Array
  readonly eventF64: Float64Array
  readonly meterI32: Int32Array
  readonly meterBytes: Buffer
  readonly methodEnds: Int32Array
  readonly methodBytes: Buffer
}

const METERS_AT = HEADER_BYTES + EVENTS * EVENT_BYTES
const METHODS_AT = METERS_AT + METERS * METER_BYTES
const NAMES_AT = METHODS_AT + METHODS_MAX * 4

/** Creates the memory for one thread. Pages that are not used are not touched. */
export function createUsageMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(NAMES_AT + METHOD_BYTES)
}

export function usageArrays(memory: SharedArrayBuffer): UsageEventArrays {
  const events = EVENTS * EVENT_BYTES
  return {
    header: new Int32Array(memory, 0, HEADER_BYTES / 4),
    eventU32: new Uint32Array(memory, HEADER_BYTES, events / 4),
    eventU16: new Uint16Array(memory, HEADER_BYTES, events / 2),
    eventU8: new Uint8Array(memory, HEADER_BYTES, events),
    eventF64: new Float64Array(memory, HEADER_BYTES, events / 8),
    meterI32: new Int32Array(memory, METERS_AT, (METERS * METER_BYTES) / 4),
    meterBytes: Buffer.from(memory, METERS_AT, METERS * METER_BYTES),
    methodEnds: new Int32Array(memory, METHODS_AT, METHODS_MAX),
    methodBytes: Buffer.from(memory, NAMES_AT, METHOD_BYTES),
  }
}
