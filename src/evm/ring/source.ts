import { DESCRIPTOR_BYTES, payloadSectionOffset, type RingGeometry } from './layout.ts'

/**
 * The bytes of a ring: a file read by position, a mapping, or a snapshot in memory. The reader depends on two guarantees: reads happen
 * in the order in which they are called, and bytes beyond the end read as zero.
 */
export type RingSource = {
  /** Bytes present. */
  readonly sizeBytes: number
  /** True when no process writes the ring any more: an event that is missing now stays missing. */
  readonly isStatic: boolean
  /** Copies `length` bytes from `offset` into `target` at `targetAt`. */
  read(offset: number, target: Uint8Array, targetAt: number, length: number): void
}

/** The storage of a writer. Writes become visible to readers in the order in which they are called. */
export type RingTarget = {
  write(offset: number, bytes: Uint8Array): void
  /**
   * Writes a u64 at a multiple of 8 in one store. A target with this method is memory shared with readers: events are published one
   * by one as a node does, each by the store of its sequence number.
   */
  readonly storeU64?: (offset: number, value: number) => void
}

/** Reads consecutive descriptors, in two reads where the range passes the end of the array. */
export function readDescriptors(
  source: RingSource,
  geometry: RingGeometry,
  range: { offset: number; count: number },
  target: Uint8Array,
): void {
  const arrayEnd = payloadSectionOffset(geometry)
  const length = range.count * DESCRIPTOR_BYTES
  const first = Math.min(length, arrayEnd - range.offset)
  source.read(range.offset, target, 0, first)
  if (first < length) source.read(arrayEnd - geometry.capacity * DESCRIPTOR_BYTES, target, first, length - first)
}

/** Reads payload bytes from an unwrapped offset, in two reads where they pass the end of the buffer. */
export function readPayload(
  source: RingSource,
  geometry: RingGeometry,
  range: { offset: number; length: number },
  target: Uint8Array,
): void {
  const sectionOffset = payloadSectionOffset(geometry)
  const at = range.offset % geometry.payloadBytes
  const first = Math.min(range.length, geometry.payloadBytes - at)
  source.read(sectionOffset + at, target, 0, first)
  if (first < range.length) source.read(sectionOffset, target, first, range.length - first)
}
