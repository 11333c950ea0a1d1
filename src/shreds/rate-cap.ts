/** Packets and bytes a second. What was not used adds up to a quarter of a second, so that the burst of a block fits. */
export type RateCap = {
  /** How many packets of at most `bytesEach` may leave now. */
  allowed(bytesEach: number, nowMs: number): number
  take(packets: number, bytes: number): void
}

const BURST_SECONDS = 0.25

export function createRateCap(perSecond: { readonly packets: number; readonly bytes: number }, nowMs: number): RateCap {
  // Never below what one batch needs, or a small cap would let nothing through at all.
  const packetsMax = Math.max(1, perSecond.packets * BURST_SECONDS)
  const bytesMax = Math.max(1500, perSecond.bytes * BURST_SECONDS)
  let packets = packetsMax
  let bytes = bytesMax
  let filledMs = nowMs
  return {
    allowed(bytesEach, atMs) {
      const seconds = (atMs - filledMs) / 1000
      filledMs = atMs
      packets = Math.min(packetsMax, packets + seconds * perSecond.packets)
      bytes = Math.min(bytesMax, bytes + seconds * perSecond.bytes)
      return Math.floor(Math.min(packets, bytes / bytesEach))
    },
    take(takenPackets, takenBytes) {
      packets -= takenPackets
      bytes -= takenBytes
    },
  }
}
