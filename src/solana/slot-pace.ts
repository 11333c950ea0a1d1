/** The length of a slot before it is learned, in milliseconds; SIMD-0525 shortens it to 200 in four steps. */
export const SLOT_MS_DEFAULT = 400

/** Lengths outside these bounds come from a clock or a source that is wrong. */
const SLOT_MS_MIN = 50
const SLOT_MS_MAX = 2000

/** Older slots no longer count, so that a new length is known within a minute. */
const WINDOW_MS = 50_000
/** The length is measured over pairs of slots that are at least this far apart: a pair of single slots would show the jitter of their arrival. */
const SPAN_MS = 8000
const SPAN_SLOTS = 20
/** At most one slot is kept in this time, whatever the rate of slots. */
const SAMPLE_MS = 1000
/** A source with few slots, one a minute, has old ones counted. */
const SAMPLES_MIN = 4
/** A slot that takes longer is a pause of the chain or of the source, not a long slot. */
const PAUSE_MS = 5000

/**
 * The length of a slot as one source shows it: the median over pairs of slots in a window. Slots that do not arrive change nothing, since the number
 * of a slot counts those before it. After a pause, or a slot below an earlier one, as of a node that was restarted, it begins anew.
 */
export class SlotPace {
  readonly #slots: number[] = []
  readonly #times: number[] = []
  #lastSlot = 0
  #lastAtMs = Number.NEGATIVE_INFINITY
  #ms: number | undefined

  /** Undefined while the slots seen span less than 8 s or 20 slots. */
  get ms(): number | undefined {
    return this.#ms
  }

  get lastAtMs(): number {
    return this.#lastAtMs
  }

  /** A slot that is the newest of its source at this time. True when the length was measured again. */
  observe(slot: number, atMs: number): boolean {
    const advance = slot - this.#lastSlot
    if (advance === 0) return false
    // True for a slot below an earlier one too.
    const isPause = atMs - this.#lastAtMs > PAUSE_MS * advance
    this.#lastSlot = slot
    this.#lastAtMs = atMs
    if (isPause) this.#begin()
    else if (atMs - (this.#times.at(-1) as number) < SAMPLE_MS) return false
    this.#slots.push(slot)
    this.#times.push(atMs)
    while (this.#times.length > SAMPLES_MIN && (this.#times[0] as number) < atMs - WINDOW_MS) {
      this.#times.shift()
      this.#slots.shift()
    }
    this.#ms = this.#measure() ?? this.#ms
    return true
  }

  #begin(): void {
    this.#ms = undefined
    this.#slots.length = 0
    this.#times.length = 0
  }

  #measure(): number | undefined {
    const lengths: number[] = []
    const [slots, times] = [this.#slots, this.#times]
    let to = 0
    for (let from = 0; from < slots.length; from++) {
      const [slot, atMs] = [slots[from] as number, times[from] as number]
      while (to < slots.length && ((times[to] as number) - atMs < SPAN_MS || (slots[to] as number) - slot < SPAN_SLOTS))
        to += 1
      if (to === slots.length) break
      lengths.push(((times[to] as number) - atMs) / ((slots[to] as number) - slot))
    }
    const middle = lengths.toSorted((a, b) => a - b)[lengths.length >> 1]
    return middle === undefined ? undefined : clampSlotMs(middle)
  }
}

export function clampSlotMs(ms: number): number {
  return Math.min(SLOT_MS_MAX, Math.max(SLOT_MS_MIN, ms))
}
