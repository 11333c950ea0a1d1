import { clampSlotMs, SLOT_MS_DEFAULT, SlotPace } from '../../solana/slot-pace.ts'

/** How late the slots of a stream arrive, compared with the earliest of them and the pace of the chain. */
export type PaceLatency = {
  /** The first shred of a slot. Returns its latency compared with the slots shortly before. */
  add(slot: number, firstMs: number): number
  /** The length of a slot. */
  slotMs(): number
  /** The latencies of all slots since the pace of the chain last changed, compared with the earliest of them. */
  all(): number[]
}

/** Latencies held for the percentiles: hours of slots. */
const ARRIVALS_MAX = 65_536
/** Slots that a new one is compared with: those of minutes. */
const RECENT = 512
/** Below this number the pace is not measured. */
const SLOTS_MIN = 20
/** A pace of the last minute that differs by more from that of all slots is a new length of a slot. */
const CHANGE_SHARE = 0.1

type Arrival = { readonly slot: number; readonly atMs: number }

/**
 * Without `slotMs` the length of a slot is the mean over all slots seen: an error in it adds up over every slot, so the median over a minute is not exact
 * enough.
 */
export function createPaceLatency(slotMs: number | undefined): PaceLatency {
  let arrivals: Arrival[] = []
  let newest: Arrival | undefined
  let pace = new SlotPace()

  function lengthMs(): number {
    if (slotMs !== undefined) return slotMs
    const first = arrivals[0]
    if (first === undefined || newest === undefined || newest.slot - first.slot < SLOTS_MIN) return SLOT_MS_DEFAULT
    return (newest.atMs - first.atMs) / (newest.slot - first.slot)
  }

  /** The latencies of these arrivals, in their order. */
  function latenciesOf(some: readonly Arrival[]): number[] {
    const length = lengthMs()
    const base = some[0]?.slot ?? 0
    const offsets = some.map(({ slot, atMs }) => atMs - (slot - base) * length)
    const earliest = offsets.reduce((least, offset) => Math.min(least, offset), Number.POSITIVE_INFINITY)
    return offsets.map((offset) => offset - earliest)
  }

  function beginAnewIfChanged(): void {
    const known = lengthMs()
    if (slotMs !== undefined || pace.ms === undefined || Math.abs(pace.ms - known) <= known * CHANGE_SHARE) return
    arrivals = []
    pace = new SlotPace()
  }

  return {
    add(slot, firstMs) {
      const arrival = { slot, atMs: firstMs }
      if (newest === undefined || slot > newest.slot) {
        newest = arrival
        pace.observe(slot, firstMs)
        beginAnewIfChanged()
      }
      const recent = [...arrivals.slice(-RECENT), arrival]
      if (arrivals.length < ARRIVALS_MAX) arrivals.push(arrival)
      return latenciesOf(recent).at(-1) as number
    },
    slotMs: () => clampSlotMs(lengthMs()),
    all: () => latenciesOf(arrivals),
  }
}
