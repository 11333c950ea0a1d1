/**
 * Which parts of a slot a node's own stream has delivered completely, so that they are not lost where the shreds did not give them. The protocol has
 * no end of a data set, so this is decided when the shreds of the slot are given up, many slots later. A part counts as delivered when
 *
 * - the stream was open, without a loss that the node has reported, from SETTLE_SLOTS slots before the slot until SETTLE_SLOTS slots after it, and
 * - the node has reported the slot as completed, or the data sets of the transactions that it sent cover the part without a hole.
 */
export class UpstreamCoverage {
  readonly #sources = new Map<number, Source>()
  readonly #slotsMax: number

  constructor(slotsMax: number) {
    this.#slotsMax = slotsMax
  }

  /** A stream of a source begins; `newestSlot` is the newest that the shreds have given. */
  opened(source: number, stream: number, newestSlot: number): void {
    this.#sources.set(source, { stream, newest: newestSlot, cleanFrom: undefined, slots: new Map() })
  }

  isOpen(source: number, stream: number): boolean {
    return this.#sources.get(source)?.stream === stream
  }

  ended(source: number): void {
    this.#sources.delete(source)
  }

  /** Something is missing, without knowing what: of one source or of all. */
  broken(source?: number): void {
    for (const [number, state] of this.#sources) {
      if (source !== undefined && source !== number) continue
      state.cleanFrom = state.newest + SETTLE_SLOTS + 1
      state.slots.clear()
    }
  }

  delivered(source: number, slot: number, startIndex: number, endIndex: number): void {
    const parts = this.#partsOf(source, slot)
    if (parts === undefined || endIndex <= startIndex) return
    const known = parts.endByStart.get(startIndex)
    if (known === undefined && parts.endByStart.size >= DATA_SETS_MAX) return
    parts.endByStart.set(startIndex, Math.max(known ?? 0, endIndex))
  }

  completed(source: number, slot: number): void {
    const parts = this.#partsOf(source, slot)
    if (parts !== undefined) parts.isComplete = true
  }

  /** Whether a source has delivered the data shreds [startIndex, endIndex) of the slot; without an end, up to the last one. */
  covers(slot: number, startIndex: number, endIndex: number | undefined): boolean {
    for (const { newest, slots } of this.#sources.values()) {
      const parts = slots.get(slot)
      if (parts === undefined || newest < slot + SETTLE_SLOTS) continue
      if (parts.isComplete || isCovered(parts.endByStart, startIndex, endIndex)) return true
    }
    return false
  }

  #partsOf(source: number, slot: number): Parts | undefined {
    const state = this.#sources.get(source)
    if (state === undefined) return undefined
    if (slot > state.newest) state.newest = slot
    state.cleanFrom ??= state.newest + SETTLE_SLOTS + 1
    if (slot < state.cleanFrom) return undefined
    let parts = state.slots.get(slot)
    if (parts === undefined) {
      parts = { endByStart: new Map(), isComplete: false }
      state.slots.set(slot, parts)
      for (const number of state.slots.keys()) if (number < state.newest - this.#slotsMax) state.slots.delete(number)
    }
    return parts
  }
}

type Source = {
  readonly stream: number
  newest: number
  /** The first slot that the stream has from its beginning; undefined before its first message. */
  cleanFrom: number | undefined
  /** None before `cleanFrom`. */
  readonly slots: Map<number, Parts>
}

type Parts = { readonly endByStart: Map<number, number>; isComplete: boolean }

/** Transactions of neighbouring slots come mixed. */
export const SETTLE_SLOTS = 4
/** In a slot of 32768 data shreds, with 32 in a data set. */
const DATA_SETS_MAX = 1024

function isCovered(endByStart: ReadonlyMap<number, number>, from: number, to: number | undefined): boolean {
  if (to === undefined) return false
  let at = from
  while (at < to) {
    const end = endByStart.get(at)
    if (end === undefined) return false
    at = end
  }
  return true
}
