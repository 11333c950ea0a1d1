import { type SlotGroup, SlotSample } from './slot-sample.ts'

/**
 * The chain that most packets belong to, and the window around it. Without signatures a few packets prove nothing about the slots that are current:
 * this window moves by the share of packets, so a few of them do not move it, of whatever slots they are and however often they come.
 *
 * - Once a second it moves up to the slot that an eighth of its accepted packets have reached.
 * - A chain ahead of it replaces it, if it has an eighth of all packets.
 * - A chain behind it or of another version replaces it, if it has eight times its packets and this one does not only pause.
 * - When it is silent, accepted packets elsewhere replace it.
 * - The first signed packet replaces one of a few packets that could not be checked.
 *
 * Another chain is a group of packets within the length of the window whose slots rise from one second to the next.
 */
export class MainChain {
  #length: WindowLength
  #slot = -1
  #version = -1
  /** The slots of the window. */
  #first = 0
  #last = 0
  #generation = 0
  /** Slots of packets that passed every check. */
  readonly #accepted = new SlotSample()
  /** Accepted packets of a usual second: the most so far, halved every second. In a pause of the chain, a few packets are not the majority at once. */
  #usual = 0
  /** Packets outside the window, before any other check, and the number of those in it. */
  readonly #outside = new SlotSample()
  #inside = 0
  #periodAtMs = Number.NEGATIVE_INFINITY
  #acceptedAtMs = 0
  /** When it last had the packets of a chain. */
  #establishedAtMs = Number.NEGATIVE_INFINITY
  #signedAtMs = Number.NEGATIVE_INFINITY
  /** Accepted packets elsewhere since the last one in the window. */
  #elsewhere = 0
  #found: (SlotGroup & { readonly atMs: number }) | undefined
  /** The chain that replaces this one when one of its packets passes every check. */
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
      this.#elsewhere = 0
      this.#accepted.add(slot, version)
      // After a long pause one packet is a share, and the chain may leave the window before the second is over.
      if (slot > this.#slot && this.#usual <= SHARE) this.#follow(1)
      return
    }
    this.#elsewhere += 1
    if (this.#candidate !== undefined && this.#isAround(this.#candidate, slot, version))
      this.#moveTo(this.#candidate.slot, version, nowMs)
    else if (this.#isOver(slot, version, nowMs)) this.#moveTo(slot, version, nowMs)
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

  /** Whether the chain is silent, and accepted packets go on at this slot. */
  #isOver(slot: number, version: number, nowMs: number): boolean {
    if (nowMs - this.#acceptedAtMs < SILENT_MS || this.#elsewhere < this.#usual / SHARE) return false
    return !this.#isOther(slot, version) || !this.#isPausing(nowMs)
  }

  /** Whether this is a slot of an older part or of another chain. */
  #isOther(slot: number, version: number): boolean {
    return version !== this.#version || slot < this.#slot
  }

  #isPausing(nowMs: number): boolean {
    return nowMs - this.#establishedAtMs < PAUSE_MS
  }

  #moveTo(slot: number, version: number, nowMs: number): void {
    if (this.#slot >= 0 && this.#isOther(slot, version)) this.#generation += 1
    this.#setSlot(slot)
    this.#version = version
    this.#acceptedAtMs = nowMs
    this.#establishedAtMs = Number.NEGATIVE_INFINITY
    this.#elsewhere = 0
    this.#usual = 0
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
    // A period is longer when no packet comes.
    const halves = 2 ** ((this.#periodAtMs - nowMs) / PERIOD_MS)
    this.#periodAtMs = nowMs
    this.#usual *= halves
    this.#follow(2 * halves)
    if (this.#outside.total >= GROUP_MIN) this.#search(nowMs)
  }

  /** Fewer packets than a share of the usual ones wait for more: an attack in a pause of the chain would have the majority. */
  #follow(sinceShare: number): void {
    const { total } = this.#accepted
    if (total === 0 || total < this.#usual / SHARE) return
    this.#usual = Math.max(this.#usual, total * sinceShare)
    if (total >= GROUP_MIN) this.#establishedAtMs = this.#acceptedAtMs
    // It does not fall: in a pause of the live feed, a source that lags has all the packets.
    this.#setSlot(Math.max(this.#slot, this.#accepted.reachedBy(1 / SHARE)))
    this.#accepted.clear()
  }

  #search(nowMs: number): void {
    const found = this.#findAhead() ?? (this.#isPausing(nowMs) ? undefined : this.#findOther())
    this.#candidate = found !== undefined && this.#hasRisen(found, nowMs) ? found : undefined
    this.#found = found && { ...found, atMs: nowMs }
    this.#outside.clear()
    this.#inside = 0
  }

  #findAhead(): SlotGroup | undefined {
    const packets = Math.max(GROUP_MIN, (this.#outside.total + this.#inside) / SHARE)
    return this.#outside.highest({ slot: this.#slot, version: this.#version }, packets, this.#length.backSlots)
  }

  #findOther(): SlotGroup | undefined {
    const other = this.#outside.densest(this.#length.backSlots, 1 / SHARE, (slot, version) =>
      this.#isOther(slot, version),
    )
    return other !== undefined && other.packets >= Math.max(GROUP_MIN, SHARE * this.#inside) ? other : undefined
  }

  /** Whether the group goes on from the one that was found before, as fast as a chain can. */
  #hasRisen({ slot, version }: SlotGroup, nowMs: number): boolean {
    const before = this.#found
    if (before?.version !== version) return false
    const slotsMax = Math.ceil(((nowMs - before.atMs) / 1000) * SLOTS_PER_SECOND_MAX)
    return slot > before.slot && slot <= before.slot + slotsMax
  }
}

export type WindowLength = { readonly backSlots: number; readonly aheadSlots: number }

const PERIOD_MS = 1000
/** One in so many packets. */
const SHARE = 8
/** Packets of another chain before it is believed. */
const GROUP_MIN = 128
const SILENT_MS = 2000
/** Two leaders that skip their four slots of 400 ms. A pause is no reason to go back to a source that lags. */
const PAUSE_MS = 4000
/** Slots of 25 ms: shorter than those of any cluster, also of a test. A node that catches up sends faster. */
const SLOTS_PER_SECOND_MAX = 40
