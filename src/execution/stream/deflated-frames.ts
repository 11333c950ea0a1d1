import { createSlabAllocator } from '../../core/slab-allocator.ts'
import { deflateFrame } from '../../platform/ws/deflate.ts'

export type DeflatedFrames = {
  /** The compressed form of a frame, or the frame itself where that is not smaller. */
  of(frame: Buffer): Buffer
}

/**
 * Compresses each frame once for all clients that accept it, when the first of them gets it. The compressed form is kept as long as the
 * frame, which the resume buffer holds: a replay does not compress again what was sent live.
 */
export function createDeflatedFrames(onDeflated?: (bytesBefore: number, bytesAfter: number) => void): DeflatedFrames {
  const allocate = createSlabAllocator()
  const known = new WeakMap<Buffer, Buffer>()
  return {
    of(frame) {
      const before = known.get(frame)
      if (before !== undefined) return before
      const deflated = deflateFrame(frame, allocate) ?? frame
      if (deflated !== frame) onDeflated?.(frame.length, deflated.length)
      known.set(frame, deflated)
      return deflated
    },
  }
}
