import { Buffer } from 'node:buffer'

/** A buffer of a quarter of a slab or more gets its own memory, so that at most a quarter of a slab is wasted. */
const SLAB_BYTES = 64 * 1024

/**
 * Allocates many small, long-lived buffers that are released in the order of their allocation. In Node's pool they share slabs with short-lived
 * buffers, and one frame of 100 bytes can retain 64 KiB; a slab here holds nothing else and is freed with its last buffer.
 */
export function createSlabAllocator(): (bytes: number) => Buffer {
  let slab = Buffer.alloc(0)
  let used = 0
  return (bytes) => {
    if (bytes >= SLAB_BYTES / 4) return Buffer.allocUnsafeSlow(bytes)
    if (used + bytes > slab.length) {
      slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
      used = 0
    }
    used += bytes
    return slab.subarray(used - bytes, used)
  }
}
