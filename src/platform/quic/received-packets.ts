import type { AckRange } from './frames.ts'

/** Ranges remembered; a packet below the oldest one counts as a duplicate. */
const RANGES_MAX = 32

/** The received packets of one number space, and whether an acknowledgement is due. */
export class ReceivedPackets {
  /** Newest first, never adjacent. */
  #ranges: AckRange[] = []
  largest = -1
  largestAtMs = 0
  /** Ack-eliciting packets since the last acknowledgement. */
  unacked = 0

  get ranges(): readonly AckRange[] {
    return this.#ranges
  }

  /** False for a duplicate. */
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
