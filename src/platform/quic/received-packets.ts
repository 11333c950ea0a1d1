import type { AckRange } from './frames.ts'

/** Gaps remembered; a packet below the oldest range kept is taken for a repeated one. */
const RANGES_MAX = 32

/** Which packets of one number space have come, and whether the peer waits to hear of them. */
export class ReceivedPackets {
  /** Newest first, never touching. */
  #ranges: AckRange[] = []
  largest = -1
  largestAtMs = 0
  /** Packets that want an acknowledgement since the last one was written. */
  unacked = 0

  get ranges(): readonly AckRange[] {
    return this.#ranges
  }

  /** False when the packet came before. */
  add(packetNumber: number, nowMs: number): boolean {
    const ranges = this.#ranges
    let at = 0
    while (at < ranges.length && (ranges[at] as AckRange).from > packetNumber + 1) at += 1
    const below = ranges[at]
    if (below !== undefined && packetNumber >= below.from && packetNumber <= below.to) return false
    if (below === undefined && ranges.length >= RANGES_MAX) return false
    if (packetNumber > this.largest) {
      this.largest = packetNumber
      this.largestAtMs = nowMs
    }
    this.#insert(at, packetNumber)
    return true
  }

  /** `at` is the first range that begins at the packet after this one, or below. */
  #insert(at: number, packetNumber: number): void {
    const ranges = this.#ranges
    const here = ranges[at]
    const next = ranges[at + 1]
    if (here !== undefined && here.from === packetNumber + 1) {
      const joins = next !== undefined && next.to === packetNumber - 1
      ranges.splice(at, joins ? 2 : 1, { from: joins ? next.from : packetNumber, to: here.to })
    } else if (here !== undefined && here.to === packetNumber - 1) {
      ranges[at] = { from: here.from, to: packetNumber }
    } else {
      ranges.splice(at, 0, { from: packetNumber, to: packetNumber })
      if (ranges.length > RANGES_MAX) ranges.pop()
    }
  }
}
