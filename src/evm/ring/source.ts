import assert from 'node:assert/strict'
import {
  DESCRIPTOR_BYTES,
  encodeRingHeader,
  payloadSectionPosition,
  type RingGeometry,
  ringFileBytes,
} from './layout.ts'

/**
 * The bytes of a ring, wherever they are: a file read by position, a mapping, a snapshot in memory. The reader depends on two
 * promises: reads happen in the order in which they are called, and what lies behind the end reads as zero.
 */
export type RingSource = {
  /** How many bytes there really are. */
  readonly sizeBytes: number
  /** True when nobody writes any more: what is missing now stays missing. */
  readonly isStatic: boolean
  /** Copies `length` bytes from `place` into `target` at `targetAt`. */
  read(position: number, target: Uint8Array, targetAt: number, length: number): void
}

/** Where a writer puts its bytes. Writes become visible to readers in the order in which they are called. */
export type RingTarget = {
  write(position: number, bytes: Uint8Array): void
  /**
   * Writes a u64 at a multiple of 8 in one store. A target that has it is memory others look at all the time; events are then
   * published one by one as a node does it, each by the store of its sequence number.
   */
  readonly storeU64?: (position: number, value: number) => void
}

/** Descriptors `seqno` and up, in two reads where the range passes the end of the array. */
export function readSlots(
  source: RingSource,
  geometry: RingGeometry,
  range: { slotPosition: number; count: number },
  target: Uint8Array,
): void {
  const endPosition = payloadSectionPosition(geometry)
  const length = range.count * DESCRIPTOR_BYTES
  const first = Math.min(length, endPosition - range.slotPosition)
  source.read(range.slotPosition, target, 0, first)
  if (first < length) source.read(endPosition - geometry.capacity * DESCRIPTOR_BYTES, target, first, length - first)
}

/** Payload bytes from an unwrapped offset, in two reads where they pass the end of the buffer. */
export function readPayload(
  source: RingSource,
  geometry: RingGeometry,
  range: { offset: number; length: number },
  target: Uint8Array,
): void {
  const sectionPosition = payloadSectionPosition(geometry)
  const at = range.offset % geometry.payloadBytes
  const first = Math.min(range.length, geometry.payloadBytes - at)
  source.read(sectionPosition + at, target, 0, first)
  if (first < range.length) source.read(sectionPosition, target, first, range.length - first)
}

/** A ring image in memory, which may be shorter than the ring it shows. */
export function createMemorySource(image: Uint8Array, options: { isStatic: boolean } = { isStatic: true }): RingSource {
  return {
    sizeBytes: image.length,
    isStatic: options.isStatic,
    read(position, target, targetAt, length) {
      const there = Math.max(0, Math.min(length, image.length - position))
      if (there > 0) target.set(image.subarray(position, position + there), targetAt)
      if (there < length) target.fill(0, targetAt + there, targetAt + length)
    },
  }
}

export type MemoryRing = { image: Uint8Array; geometry: RingGeometry; source: RingSource; target: RingTarget }

/** A new, empty ring in memory, to be written and read at once. */
export function createMemoryRing(geometry: RingGeometry): MemoryRing {
  const image = new Uint8Array(ringFileBytes(geometry))
  image.set(encodeRingHeader(geometry))
  return {
    image,
    geometry,
    source: createMemorySource(image, { isStatic: false }),
    target: {
      write(position, bytes) {
        assert(position + bytes.length <= image.length, 'a write stays inside the ring')
        image.set(bytes, position)
      },
    },
  }
}
