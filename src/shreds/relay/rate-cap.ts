/** A token bucket for packets and bytes per second. It holds a quarter of a second's worth, so that the burst of a block fits. */
export type RateCap = {
  /** How many packets of at most `bytesEach` may be sent now. */
  allowed(bytesEach: number, nowMs: number): number
  take(packets: number, bytes: number): void
}

const BURST_SECONDS = 0.25

export function createRateCap(perSecond: { readonly packets: number; readonly bytes: number }, nowMs: number): RateCap {
  // At least one packet of the largest size fits, or a small cap would never send anything.
  const packetsMax = Math.max(1, perSecond.packets * BURST_SECONDS)
  const bytesMax = Math.max(1500, perSecond.bytes * BURST_SECONDS)
  // Typed arrays, because V8 allocates a heap number at each change of a fractional number in a closure variable.
  const left = Float64Array.of(packetsMax, bytesMax)
  const filledMs = Float64Array.of(nowMs)
  return {
    allowed(bytesEach, atMs) {
      if (atMs !== filledMs[0]) {
        const seconds = (atMs - (filledMs[0] as number)) / 1000
        filledMs[0] = atMs
        left[0] = Math.min(packetsMax, (left[0] as number) + seconds * perSecond.packets)
        left[1] = Math.min(bytesMax, (left[1] as number) + seconds * perSecond.bytes)
      }
      return Math.floor(Math.min(left[0] as number, (left[1] as number) / bytesEach))
    },
    take(takenPackets, takenBytes) {
      left[0] = (left[0] as number) - takenPackets
      left[1] = (left[1] as number) - takenBytes
    },
  }
}
