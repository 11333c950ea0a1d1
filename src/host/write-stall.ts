import type { Duplex } from 'node:stream'

export type StallWatch = {
  /** Until the stream closes. */
  watch(stream: Duplex): void
  forget(stream: Duplex): void
  /** Looks at all of them; to be called again and again. */
  sweep(nowMs: number): void
}

type Seen = { pendingBytes: number; sinceMs: number }

/**
 * Cuts off peers that do not read. What is still to be written must grow less: a stream whose pending bytes stay the same for `stallMs` has
 * nobody at the other end who wants them. Writers keep pieces small, since a piece counts only when it has left whole.
 */
export function createStallWatch(stallMs: number): StallWatch {
  const streams = new Map<Duplex, Seen>()
  return {
    watch(stream) {
      streams.set(stream, { pendingBytes: 0, sinceMs: 0 })
      stream.once('close', () => streams.delete(stream))
    },
    forget: (stream) => void streams.delete(stream),
    sweep(nowMs) {
      for (const [stream, seen] of streams) {
        const pendingBytes = stream.writableLength
        if (pendingBytes === 0 || pendingBytes !== seen.pendingBytes) {
          seen.pendingBytes = pendingBytes
          seen.sinceMs = nowMs
        } else if (nowMs - seen.sinceMs >= stallMs) stream.destroy()
      }
    },
  }
}
