import type { Duplex } from 'node:stream'

export type StallWatch = {
  /** Watches the stream until it closes. */
  watch(stream: Duplex): void
  forget(stream: Duplex): void
  /** Checks all streams; called periodically. */
  sweep(nowMs: number): void
}

export type StallLimits = {
  readonly stallMs: number
  /** Unwritten bytes of all streams together. */
  readonly pendingBytesMax: number
}

type Progress = { pendingBytes: number; sinceMs: number }

/**
 * Destroys streams whose peers do not read: those whose pending bytes stay the same for `stallMs`. Writers must write in small pieces, since a piece
 * counts only when it is completely sent. When all streams together have more pending than allowed, those with most of it go first; of several with as
 * much, those without progress for longest.
 */
export function createStallWatch({ stallMs, pendingBytesMax }: StallLimits): StallWatch {
  const streams = new Map<Duplex, Progress>()

  function reduceTo(bytesMax: number, pendingBytes: number): void {
    const pending = [...streams].filter(([, progress]) => progress.pendingBytes > 0)
    let remaining = pendingBytes
    const inOrder = pending.toSorted(([, a], [, b]) => b.pendingBytes - a.pendingBytes || a.sinceMs - b.sinceMs)
    for (const [stream, progress] of inOrder) {
      if (remaining <= bytesMax) return
      remaining -= progress.pendingBytes
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
      for (const [stream, progress] of streams) {
        const pendingBytes = stream.writableLength
        if (pendingBytes === 0 || pendingBytes !== progress.pendingBytes) {
          progress.pendingBytes = pendingBytes
          progress.sinceMs = nowMs
        } else if (nowMs - progress.sinceMs >= stallMs) {
          stream.destroy()
          continue
        }
        total += pendingBytes
      }
      if (total > pendingBytesMax) reduceTo(pendingBytesMax, total)
    },
  }
}
