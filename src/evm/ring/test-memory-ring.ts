import assert from 'node:assert/strict'
import { encodeRingHeader, type RingGeometry, ringFileBytes } from './layout.ts'
import type { RingSource, RingTarget } from './source.ts'

/** A ring image in memory; it may be shorter than its header says. */
export function createMemorySource(image: Uint8Array, options: { isStatic: boolean } = { isStatic: true }): RingSource {
  return {
    sizeBytes: image.length,
    isStatic: options.isStatic,
    read(offset, target, targetAt, length) {
      const present = Math.max(0, Math.min(length, image.length - offset))
      if (present > 0) target.set(image.subarray(offset, offset + present), targetAt)
      if (present < length) target.fill(0, targetAt + present, targetAt + length)
    },
  }
}

export type MemoryRing = { image: Uint8Array; geometry: RingGeometry; source: RingSource; target: RingTarget }

/** A new, empty ring in memory that is written and read at the same time. */
export function createMemoryRing(geometry: RingGeometry): MemoryRing {
  const image = new Uint8Array(ringFileBytes(geometry))
  image.set(encodeRingHeader(geometry))
  return {
    image,
    geometry,
    source: createMemorySource(image, { isStatic: false }),
    target: {
      write(offset, bytes) {
        assert(offset + bytes.length <= image.length, 'a write stays inside the ring')
        image.set(bytes, offset)
      },
    },
  }
}
