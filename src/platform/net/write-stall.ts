import type { Duplex } from 'node:stream'

export type StallWatch = {
  /** Until the stream closes. */
  watch(stream: Duplex): void
  forget(stream: Duplex): void
  /** Looks at all of them; to be called again and again. */
  sweep(nowMs: number): void
}

export type StallLimits = {
  readonly stallMs: number
  /** What may wait for all peers together. */
  readonly pendingBytesMax: number
}

type Seen = { pendingBytes: number; sinceMs: number }

/**
 * Cuts off peers that do not read. What is still to be written must grow less: a stream whose pending bytes stay the same for `stallMs` has
 * nobody at the other end who wants them. Writers keep pieces small, since a piece counts only when it has left whole. Where all streams together
 * have more pending than allowed, those that have stood still longest go first.
 */
export function createStallWatch({ stallMs, pendingBytesMax }: StallLimits): StallWatch {
  const streams = new Map<Duplex, Seen>()

  function cutDownTo(bytesMax: number, pendingBytes: number): void {
    const pending = [...streams].filter(([, seen]) => seen.pendingBytes > 0)
    let left = pendingBytes
    for (const [stream, seen] of pending.toSorted(([, a], [, b]) => a.sinceMs - b.sinceMs)) {
      if (left <= bytesMax) return
      left -= seen.pendingBytes
      stream.destroy()
    }
  }

  return {
    watch(stream) {
      streams.set(stream, { pendingBytes: 0, sinceMs: 0 })
      stream.once('close', () => streams.delete(stream))
    },
    forget: (stream) => void streams.delete(stream),
    sweep(nowMs) {
      let total = 0
      for (const [stream, seen] of streams) {
        const pendingBytes = stream.writableLength
        if (pendingBytes === 0 || pendingBytes !== seen.pendingBytes) {
          seen.pendingBytes = pendingBytes
          seen.sinceMs = nowMs
        } else if (nowMs - seen.sinceMs >= stallMs) {
          stream.destroy()
          continue
        }
        total += pendingBytes
      }
      if (total > pendingBytesMax) cutDownTo(pendingBytesMax, total)
    },
  }
}
