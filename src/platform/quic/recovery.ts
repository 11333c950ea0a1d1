import type { AckRange } from './frames.ts'
import type { Level } from './packet.ts'

/** Content of a packet that must arrive. It may be declared lost and still be acknowledged later. */
export type Carried = { acked(): void; lost(): void }

/** An ack-eliciting packet; others are not tracked. */
export type SentPacket = {
  readonly packetNumber: number
  readonly sentAtMs: number
  readonly bytes: number
  readonly carried: readonly Carried[]
}

type Space = {
  readonly sent: Map<number, SentPacket>
  largestAcked: number
  lossAtMs: number
  lastSentAtMs: number
}

export type RecoveryOptions = {
  readonly initialWindowBytes: number
  /** Loss does not make the window smaller than this, but for persistent congestion. */
  readonly windowBytesMin: number
  readonly datagramBytes: number
}

/** RFC 9002: constants of section 6 and 7. */
const PACKET_THRESHOLD = 3
const TIME_THRESHOLD = 9 / 8
const GRANULARITY_MS = 1
const INITIAL_RTT_MS = 333
const LOSS_REDUCTION = 0.5
const PERSISTENT_CONGESTION = 3
const PTO_COUNT_MAX = 10

export const LEVELS: readonly Level[] = ['initial', 'handshake', 'application']

/** Loss detection and congestion control of one connection (RFC 9002, NewReno). It has no timer: `deadlineMs` returns when to check. */
export class Recovery {
  readonly #options: RecoveryOptions
  readonly #spaces: Record<Level, Space> = { initial: newSpace(), handshake: newSpace(), application: newSpace() }
  windowBytes: number
  bytesInFlight = 0
  smoothedMs = INITIAL_RTT_MS
  #latestMs = INITIAL_RTT_MS
  #variationMs = INITIAL_RTT_MS / 2
  minRttMs = Number.POSITIVE_INFINITY
  #hasSample = false
  #firstSampleAtMs = Number.POSITIVE_INFINITY
  #thresholdBytes = Number.POSITIVE_INFINITY
  #recoveryFromMs = Number.NEGATIVE_INFINITY
  ptoCount = 0
  peerAckDelayMsMax = 25
  isConfirmed = false
  lostPackets = 0

  constructor(options: RecoveryOptions) {
    this.#options = options
    this.windowBytes = options.initialWindowBytes
  }

  largestAcked(level: Level): number {
    return this.#spaces[level].largestAcked
  }

  onSent(level: Level, packet: SentPacket): void {
    const space = this.#spaces[level]
    space.sent.set(packet.packetNumber, packet)
    this.bytesInFlight += packet.bytes
    space.lastSentAtMs = packet.sentAtMs
  }

  /** Returns false for an acknowledgement of something that was never sent. */
  onAck(
    level: Level,
    ranges: readonly AckRange[],
    { delayMs, nowMs, nextNumber }: { delayMs: number; nowMs: number; nextNumber: number },
  ): boolean {
    const space = this.#spaces[level]
    const largest = (ranges[0] as AckRange).to
    if (largest >= nextNumber) return false
    space.largestAcked = Math.max(space.largestAcked, largest)
    const newly: SentPacket[] = []
    for (const { from, to } of ranges) {
      // The shorter of the acknowledged range and the packets in flight.
      if (to - from < space.sent.size) {
        for (let number = from; number <= to; number++) takeIfSent(space, number, newly)
      } else
        for (const number of [...space.sent.keys()])
          if (number >= from && number <= to) takeIfSent(space, number, newly)
    }
    if (newly.length === 0) return true
    const newest = newly.reduce((best, packet) => (packet.packetNumber > best.packetNumber ? packet : best))
    if (newest.packetNumber === largest) {
      this.#sample(nowMs - newest.sentAtMs, level === 'application' ? delayMs : 0, nowMs)
    }
    for (const packet of newly) {
      this.bytesInFlight -= packet.bytes
      this.#grow(packet)
      for (const carried of packet.carried) carried.acked()
    }
    this.detectLost(level, nowMs)
    // The client's address is validated once the server has acknowledged a handshake packet.
    if (level !== 'initial' || this.isConfirmed) this.ptoCount = 0
    return true
  }

  #sample(latestMs: number, delayMs: number, nowMs: number): void {
    const latest = Math.max(0.001, latestMs)
    this.#latestMs = latest
    this.minRttMs = Math.min(this.minRttMs, latest)
    if (!this.#hasSample) {
      this.#hasSample = true
      this.#firstSampleAtMs = nowMs
      this.smoothedMs = latest
      this.#variationMs = latest / 2
      return
    }
    const delay = this.isConfirmed ? Math.min(delayMs, this.peerAckDelayMsMax) : delayMs
    const adjusted = latest >= this.minRttMs + delay ? latest - delay : latest
    this.#variationMs = 0.75 * this.#variationMs + 0.25 * Math.abs(this.smoothedMs - adjusted)
    this.smoothedMs = 0.875 * this.smoothedMs + 0.125 * adjusted
  }

  #grow(packet: SentPacket): void {
    if (packet.sentAtMs <= this.#recoveryFromMs) return
    // An unused window is no measure of the path.
    if (this.bytesInFlight + packet.bytes < this.windowBytes / 2) return
    if (this.windowBytes < this.#thresholdBytes) this.windowBytes += packet.bytes
    else this.windowBytes += (this.#options.datagramBytes * packet.bytes) / this.windowBytes
  }

  /** Declares packets lost by packet or time threshold. */
  detectLost(level: Level, nowMs: number): void {
    const space = this.#spaces[level]
    space.lossAtMs = Number.POSITIVE_INFINITY
    if (space.largestAcked < 0) return
    const lossDelayMs = Math.max(TIME_THRESHOLD * Math.max(this.smoothedMs, this.#latestMs), GRANULARITY_MS)
    const lost: SentPacket[] = []
    for (const packet of space.sent.values()) {
      if (packet.packetNumber > space.largestAcked) break
      const isOld = packet.sentAtMs <= nowMs - lossDelayMs
      if (isOld || space.largestAcked >= packet.packetNumber + PACKET_THRESHOLD) lost.push(packet)
      else space.lossAtMs = Math.min(space.lossAtMs, packet.sentAtMs + lossDelayMs)
    }
    if (lost.length > 0) this.#lose(space, lost, nowMs)
  }

  #lose(space: Space, lost: readonly SentPacket[], nowMs: number): void {
    for (const packet of lost) {
      space.sent.delete(packet.packetNumber)
      this.bytesInFlight -= packet.bytes
      for (const carried of packet.carried) carried.lost()
    }
    this.lostPackets += lost.length
    const newest = lost.at(-1) as SentPacket
    if (newest.sentAtMs > this.#recoveryFromMs) {
      this.#recoveryFromMs = nowMs
      this.#thresholdBytes = Math.max(this.windowBytes * LOSS_REDUCTION, this.#options.windowBytesMin)
      this.windowBytes = this.#thresholdBytes
    }
    const measured = lost.filter((packet) => packet.sentAtMs > this.#firstSampleAtMs)
    const span = (measured.at(-1)?.sentAtMs ?? 0) - (measured[0]?.sentAtMs ?? 0)
    if (span > this.#ptoMs('application') * PERSISTENT_CONGESTION) {
      this.windowBytes = 2 * this.#options.datagramBytes
      this.#recoveryFromMs = Number.NEGATIVE_INFINITY
    }
  }

  #ptoMs(level: Level): number {
    const delayMs = level === 'application' ? this.peerAckDelayMsMax : 0
    return this.smoothedMs + Math.max(4 * this.#variationMs, GRANULARITY_MS) + delayMs
  }

  /** The probe timeout (PTO). */
  get ptoMs(): number {
    return this.#ptoMs('application')
  }

  /** The next deadline, or infinity. `hasKeys` are the levels with send keys. */
  deadlineMs(
    hasKeys: (level: Level) => boolean,
    nowMs: number,
  ): { readonly atMs: number; readonly level: Level; readonly kind: 'loss' | 'probe' } {
    let best = { atMs: Number.POSITIVE_INFINITY, level: 'initial' as Level, kind: 'loss' as 'loss' | 'probe' }
    for (const level of LEVELS) {
      const { lossAtMs } = this.#spaces[level]
      if (lossAtMs < best.atMs) best = { atMs: lossAtMs, level, kind: 'loss' }
    }
    if (best.atMs !== Number.POSITIVE_INFINITY) return best
    const backoff = 2 ** Math.min(this.ptoCount, PTO_COUNT_MAX)
    if (LEVELS.every((level) => this.#spaces[level].sent.size === 0)) {
      // Until the server has validated the address, it may be unable to send; only a probe resolves the deadlock.
      if (this.isConfirmed || this.#spaces.handshake.largestAcked >= 0) return best
      const level = hasKeys('handshake') ? 'handshake' : 'initial'
      const from = Math.max(this.#spaces.initial.lastSentAtMs, this.#spaces.handshake.lastSentAtMs)
      const base = Number.isFinite(from) ? from : nowMs
      return { atMs: base + this.#ptoMs(level) * backoff, level, kind: 'probe' }
    }
    for (const level of LEVELS) {
      const space = this.#spaces[level]
      if (space.sent.size === 0 || (level === 'application' && !this.isConfirmed)) continue
      const atMs = space.lastSentAtMs + this.#ptoMs(level) * backoff
      if (atMs < best.atMs) best = { atMs, level, kind: 'probe' }
    }
    return best
  }

  /** On a probe timeout: resends the content of the oldest packets, which may still be acknowledged. */
  repeatOldest(level: Level, packets: number): void {
    let left = packets
    for (const packet of this.#spaces[level].sent.values()) {
      for (const carried of packet.carried) carried.lost()
      left -= 1
      if (left === 0) return
    }
  }

  /** The keys of this level are discarded, and its packets with them. */
  discard(level: Level): void {
    const space = this.#spaces[level]
    for (const packet of space.sent.values()) this.bytesInFlight -= packet.bytes
    space.sent.clear()
    space.lossAtMs = Number.POSITIVE_INFINITY
    this.ptoCount = 0
  }
}

function newSpace(): Space {
  return {
    sent: new Map(),
    largestAcked: -1,
    lossAtMs: Number.POSITIVE_INFINITY,
    lastSentAtMs: Number.NEGATIVE_INFINITY,
  }
}

function takeIfSent(space: Space, packetNumber: number, taken: SentPacket[]): void {
  const packet = space.sent.get(packetNumber)
  if (packet === undefined) return
  space.sent.delete(packetNumber)
  taken.push(packet)
}
