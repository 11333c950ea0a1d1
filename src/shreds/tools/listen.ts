import type { ShredFault } from '../../solana/shred/shred.ts'
import { readChallenge } from '../destinations/challenge.ts'
import type { LeaderRange } from '../relay/leaders.ts'
import { createPaceLatency } from './pace-latency.ts'
import { createSlotAssembler, type SlotAssemblerOptions, type SlotSummary } from './slot-assembler.ts'

/** Measures received shreds as a customer would: which arrived, which are missing, how late. */
export type Listener = {
  /** Returns the packet to send back when it is a challenge of the operator. */
  receive(packet: Uint8Array, atMs: number): Uint8Array | undefined
  /** Slots finished since the last call. */
  lines(): ListenLine[]
  /** Slots closed since the last call because of a limit. */
  closedLines(): ListenLine[]
  /** All remaining slots, and the totals. */
  end(): { readonly lines: ListenLine[]; readonly totals: ListenTotals }
  totals(): ListenTotals
}

export type ListenLine = SlotSummary & {
  /** Delay of the slot's first shred relative to the earliest slot plus the length of a slot per slot. */
  readonly latencyMs: number
  /** From the slot's first shred until its block could be rebuilt. */
  readonly completeAfterMs: number | undefined
}

export type ListenTotals = {
  readonly packets: number
  readonly bytes: number
  readonly duplicates: number
  readonly late: number
  readonly malformed: number
  readonly faults: Readonly<Partial<Record<ShredFault, number>>>
  readonly challenges: number
  readonly slots: number
  readonly slotsComplete: number
  /** Slots between the lowest and the highest of which no shred arrived. */
  readonly slotsMissing: number
  readonly recovered: number
  readonly missing: number
  readonly latencyMsP50: number | undefined
  readonly latencyMsP99: number | undefined
}

export type ListenOptions = {
  /** Length of a slot, for the latency; by default it is learned from the shreds. */
  readonly slotMs?: number | undefined
  readonly leaders?: readonly LeaderRange[]
  readonly onBlock?: SlotAssemblerOptions['onBlock']
  /** Slots assembled at one time. */
  readonly slotsMax?: number
  readonly verifyTransactions?: boolean
}

/** About 160 MB of shreds. */
const SHREDS_MAX = 131_072
const SLOTS_OPEN_MAX = 64

export function createListener(options: ListenOptions): Listener {
  const latency = createPaceLatency(options.slotMs)
  const assembler = createSlotAssembler({
    slotMs: latency.slotMs,
    slotsMax: options.slotsMax ?? SLOTS_OPEN_MAX,
    shredsMax: SHREDS_MAX,
    ...(options.leaders === undefined ? {} : { leaders: options.leaders }),
    ...(options.onBlock === undefined ? {} : { onBlock: options.onBlock }),
    ...(options.verifyTransactions === undefined ? {} : { verifyTransactions: options.verifyTransactions }),
  })
  const sums = { packets: 0, bytes: 0, duplicates: 0, late: 0, malformed: 0, challenges: 0 }
  const done = { slots: 0, slotsComplete: 0, recovered: 0, missing: 0 }
  let [lowest, highest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]

  function lineOf(summary: SlotSummary): ListenLine {
    const latencyMs = latency.add(summary.slot, summary.firstMs)
    done.slots += 1
    done.slotsComplete += summary.isComplete ? 1 : 0
    done.recovered += summary.recovered
    done.missing += summary.missing
    lowest = Math.min(lowest, summary.slot)
    highest = Math.max(highest, summary.slot)
    return { ...summary, latencyMs, completeAfterMs: summary.completeMs && summary.completeMs - summary.firstMs }
  }

  function totals(): ListenTotals {
    const sorted = latency.all().toSorted((a, b) => a - b)
    const share = (part: number): number | undefined =>
      sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]
    return {
      ...sums,
      faults: Object.fromEntries(assembler.faults),
      ...done,
      slotsMissing: done.slots === 0 ? 0 : Math.max(0, highest - lowest + 1 - done.slots),
      latencyMsP50: share(0.5),
      latencyMsP99: share(0.99),
    }
  }

  return {
    receive(packet, atMs) {
      if (readChallenge(packet) !== undefined) {
        sums.challenges += 1
        return packet
      }
      sums.packets += 1
      sums.bytes += packet.length
      const outcome = assembler.receive(packet, atMs)
      if (outcome === 'duplicate') sums.duplicates += 1
      else if (outcome === 'late') sums.late += 1
      else if (outcome === 'malformed') sums.malformed += 1
      return undefined
    },
    lines: () => assembler.finish().map(lineOf),
    closedLines: () => assembler.takeFinished().map(lineOf),
    end() {
      const lines = assembler.finishAll().map(lineOf)
      return { lines, totals: totals() }
    },
    totals,
  }
}
