import { Buffer } from 'node:buffer'

/** What is kept is cut from slabs of this size; a quarter of one and more gets memory of its own, so that at most a quarter of a slab is wasted. */
const SLAB_BYTES = 64 * 1024

/**
 * Memory for many small buffers that are kept long and let go of in the order they were made. Node's own pool cuts them out of the same slabs as
 * whatever else is made meanwhile, and one kept frame of 100 bytes would hold on to 64 KiB; here a slab holds nothing else and goes when its
 * last buffer goes.
 */
export function keptMemory(): (bytes: number) => Buffer {
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
