import { type SlotGroup, SlotSample } from './slot-sample.ts'

export type WindowLength = { readonly backSlots: number; readonly aheadSlots: number }

const PERIOD_MS = 1000
/** An eighth of the packets decides; see the rules at the class. */
const SHARE_DIVISOR = 8
/** Fewer packets are no chain. */
const GROUP_MIN = 128
const SILENT_MS = 2000
/** Two leaders that skip their four slots of 400 ms. A pause is no reason to go back to a source that lags. */
const PAUSE_MS = 4000
/** Slots of 25 ms: shorter than those of any cluster, also of a test. A node that catches up sends faster. */
const SLOTS_PER_SECOND_MAX = 40

/**
 * The chain that most packets belong to: its newest slot, and the window of slots around that. Without signatures a few packets prove nothing about the
 * slots that are current. So the share of packets decides where the window is: a few packets do not move it, of whatever slots they are and however often
 * they come. Packets count before any other check (`observe`); those that passed every check are accepted (`advance`).
 *
 * The window moves up with its own chain: once a second to the highest slot that an eighth of the accepted packets have reached. It never moves down.
 *
 * Another chain replaces this one
 * - if it is ahead and has an eighth of all packets;
 * - if it is behind or of another version, has eight times the packets of this one, and this one has not been established for PAUSE_MS;
 * - if this one has been silent for SILENT_MS, and packets of the other one are accepted;
 * - with its first signed packet, if this one is a few packets that could not be checked.
 *
 * A chain is established by a period with GROUP_MIN accepted packets. In the first two cases another chain is a group of GROUP_MIN packets within the
 * length of the window whose slots rise from one search to the next, as fast as those of a chain can. It is the candidate then, and replaces this chain
 * with its first accepted packet.
 */
export class MainChain {
  #length: WindowLength
  /** The newest slot of the chain; -1 before the first accepted packet. */
  #slot = -1
  #version = -1
  /** The slots of the window. */
  #first = 0
  #last = 0
  #generation = 0
  /** The accepted packets in the window since it was last moved. */
  readonly #accepted = new SlotSample()
  /** The most accepted packets of a second, halved every second. While the chain pauses, an eighth of this is the least that moves the window. */
  #peakPerSecond = 0
  /** All packets since the last search for another chain: those outside the window, and the number of those in it. */
  readonly #outside = new SlotSample()
  #inside = 0
  #periodAtMs = Number.NEGATIVE_INFINITY
  /** The last accepted packet in the window. */
  #acceptedAtMs = 0
  /** The last accepted packet of the last period with GROUP_MIN of them. */
  #establishedAtMs = Number.NEGATIVE_INFINITY
  #signedAtMs = Number.NEGATIVE_INFINITY
  /** Accepted packets outside the window since the last one in it. */
  #acceptedOutside = 0
  /** What the last search found, and when that was. */
  #found: (SlotGroup & { readonly atMs: number }) | undefined
  /** The other chain that replaces this one with its first accepted packet. */
  #candidate: SlotGroup | undefined

  constructor(length: WindowLength) {
    this.#length = length
  }

  setLength(length: WindowLength): void {
    this.#length = length
    this.#setSlot(this.#slot)
  }

  get slot(): number | undefined {
    return this.#slot < 0 ? undefined : this.#slot
  }

  get version(): number | undefined {
    return this.#version < 0 ? undefined : this.#version
  }

  /** How often it was replaced by a chain behind it or of another version. */
  get generation(): number {
    return this.#generation
  }

  /** Counts a packet, before any other check. True when its slot is in the window of this chain, or of one that may replace it. */
  observe(slot: number, version: number, nowMs: number): boolean {
    if (nowMs - this.#periodAtMs >= PERIOD_MS) this.#endPeriod(nowMs)
    if (this.#slot < 0) return false
    if (this.#includes(slot, version)) this.#inside += 1
    else this.#outside.add(slot, version)
    return this.isCurrent(slot, version)
  }

  /** Whether the slot is in the window of this chain, or of one that may replace it. */
  isCurrent(slot: number, version: number): boolean {
    if (this.#slot < 0) return false
    if (this.#includes(slot, version)) return true
    return this.#candidate !== undefined && this.#isAround(this.#candidate, slot, version)
  }

  /** Records a packet that passed every check. While packets are signed, those that were not checked do not count. */
  advance(slot: number, version: number, nowMs: number, isSigned: boolean): void {
    const isFirstSigned = isSigned && this.isUnproven
    if (isSigned) this.#signedAtMs = nowMs
    else if (this.isSigned(nowMs)) return
    if (this.#slot < 0 || (isFirstSigned && !this.#includes(slot, version))) this.#moveTo(slot, version, nowMs)
    if (this.#includes(slot, version)) {
      this.#acceptedAtMs = nowMs
      this.#acceptedOutside = 0
      this.#accepted.add(slot, version)
      // After a long pause one packet is an eighth of the peak, and the chain may leave the window before the second is over.
      if (slot > this.#slot && this.#peakPerSecond <= SHARE_DIVISOR) this.#moveUp(1)
      return
    }
    this.#acceptedOutside += 1
    if (this.#candidate !== undefined && this.#isAround(this.#candidate, slot, version))
      this.#moveTo(this.#candidate.slot, version, nowMs)
    else if (this.#isReplacedBy(slot, version, nowMs)) this.#moveTo(slot, version, nowMs)
  }

  /**
   * Whether it has only a few packets, none of them signed: they prove nothing. One of many packets is the live feed, whose schedule may not be known
   * yet, and a signed packet elsewhere may be a replayed one.
   */
  get isUnproven(): boolean {
    if (this.#signedAtMs !== Number.NEGATIVE_INFINITY) return false
    return this.#establishedAtMs === Number.NEGATIVE_INFINITY && this.#accepted.total < GROUP_MIN
  }

  /** Whether signed packets arrive. */
  isSigned(nowMs: number): boolean {
    return nowMs - this.#signedAtMs < SILENT_MS
  }

  /** Whether the slot is in a window, of any version. */
  hasSlot(slot: number): boolean {
    if (this.#slot >= 0 && this.#includes(slot, this.#version)) return true
    return this.#candidate !== undefined && this.#isAround(this.#candidate, slot, this.#candidate.version)
  }

  /** Whether the slot is older than those of the window. */
  isBehind(slot: number, version: number): boolean {
    return version === this.#version && slot < this.#first
  }

  #includes(slot: number, version: number): boolean {
    return slot >= this.#first && slot <= this.#last && version === this.#version
  }

  #isAround(group: SlotGroup, slot: number, version: number): boolean {
    if (version !== group.version) return false
    return slot >= group.slot - this.#length.backSlots && slot <= group.slot + this.#length.aheadSlots
  }

  /** Whether this chain is silent and that of an accepted packet outside the window replaces it. One behind or of another version waits for longer. */
  #isReplacedBy(slot: number, version: number, nowMs: number): boolean {
    if (nowMs - this.#acceptedAtMs < SILENT_MS || this.#acceptedOutside < this.#peakPerSecond / SHARE_DIVISOR)
      return false
    return !this.#isBehindOrOtherVersion(slot, version) || !this.#isEstablished(nowMs)
  }

  /** Whether the slot is below the newest slot of this chain, or of another shred version. */
  #isBehindOrOtherVersion(slot: number, version: number): boolean {
    return version !== this.#version || slot < this.#slot
  }

  /** Whether it was established within PAUSE_MS: if nothing comes now, it only pauses. */
  #isEstablished(nowMs: number): boolean {
    return nowMs - this.#establishedAtMs < PAUSE_MS
  }

  #moveTo(slot: number, version: number, nowMs: number): void {
    if (this.#slot >= 0 && this.#isBehindOrOtherVersion(slot, version)) this.#generation += 1
    this.#setSlot(slot)
    this.#version = version
    this.#acceptedAtMs = nowMs
    this.#establishedAtMs = Number.NEGATIVE_INFINITY
    this.#acceptedOutside = 0
    this.#peakPerSecond = 0
    this.#candidate = undefined
    this.#found = undefined
    this.#accepted.clear()
    this.#outside.clear()
    this.#inside = 0
  }

  #setSlot(slot: number): void {
    this.#slot = slot
    this.#first = slot - this.#length.backSlots
    this.#last = slot + this.#length.aheadSlots
  }

  #endPeriod(nowMs: number): void {
    // A period ends with a packet, so it is longer when none comes.
    const decay = 2 ** ((this.#periodAtMs - nowMs) / PERIOD_MS)
    this.#periodAtMs = nowMs
    this.#peakPerSecond *= decay
    // As if all its packets had come in its first second.
    this.#moveUp(2 * decay)
    if (this.#outside.total >= GROUP_MIN) this.#findCandidate(nowMs)
  }

  /**
   * Moves the window up. With fewer accepted packets than `#peakPerSecond / SHARE_DIVISOR` it waits for more: in a pause an attacker would have the
   * majority. `weight` is what an accepted packet counts for the peak.
   */
  #moveUp(weight: number): void {
    const { total } = this.#accepted
    if (total === 0 || total < this.#peakPerSecond / SHARE_DIVISOR) return
    this.#peakPerSecond = Math.max(this.#peakPerSecond, total * weight)
    if (total >= GROUP_MIN) this.#establishedAtMs = this.#acceptedAtMs
    // Never down: in a pause of the live feed, a source that lags has all the packets.
    this.#setSlot(Math.max(this.#slot, this.#accepted.reachedBy(1 / SHARE_DIVISOR)))
    this.#accepted.clear()
  }

  /** Looks for another chain among the packets outside the window. It is the candidate if it was found the last time too. */
  #findCandidate(nowMs: number): void {
    const found = this.#findAhead() ?? (this.#isEstablished(nowMs) ? undefined : this.#findBehindOrOtherVersion())
    this.#candidate = found !== undefined && this.#hasRisen(found, nowMs) ? found : undefined
    this.#found = found && { ...found, atMs: nowMs }
    this.#outside.clear()
    this.#inside = 0
  }

  #findAhead(): SlotGroup | undefined {
    const packets = Math.max(GROUP_MIN, (this.#outside.total + this.#inside) / SHARE_DIVISOR)
    return this.#outside.highest({ slot: this.#slot, version: this.#version }, packets, this.#length.backSlots)
  }

  #findBehindOrOtherVersion(): SlotGroup | undefined {
    const other = this.#outside.densest(this.#length.backSlots, 1 / SHARE_DIVISOR, (slot, version) =>
      this.#isBehindOrOtherVersion(slot, version),
    )
    return other !== undefined && other.packets >= Math.max(GROUP_MIN, SHARE_DIVISOR * this.#inside) ? other : undefined
  }

  /** Whether the group goes on from the one that was found before, as fast as a chain can. */
  #hasRisen({ slot, version }: SlotGroup, nowMs: number): boolean {
    const before = this.#found
    if (before?.version !== version) return false
    const slotsMax = Math.ceil(((nowMs - before.atMs) / 1000) * SLOTS_PER_SECOND_MAX)
    return slot > before.slot && slot <= before.slot + slotsMax
  }
}
