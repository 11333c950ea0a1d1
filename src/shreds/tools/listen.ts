import type { ShredFault } from '../../solana/shred/shred.ts'
import { readChallenge } from '../destinations/challenge.ts'
import type { LeaderRange } from '../relay/leaders.ts'
import { createSlotAssembler, type SlotAssemblerOptions, type SlotSummary } from './slot-assembler.ts'

/** What arrives at a port, measured as a customer would: what came, what was missing, how late. */
export type Listener = {
  /** Returns the packet to send back where it is a challenge of the operator. */
  take(packet: Uint8Array, atMs: number): Uint8Array | undefined
  /** Slots that are done with since the last call. */
  lines(): ListenLine[]
  /** Slots that had to make room for others since the last call. */
  closedLines(): ListenLine[]
  /** All that is left, and the sums. */
  end(): { readonly lines: ListenLine[]; readonly totals: ListenTotals }
  totals(): ListenTotals
}

export type ListenLine = SlotSummary & {
  /** How much later the slot's first shred came than the pace of the earliest slot allows. */
  readonly latencyMs: number
  /** From the slot's first shred until its block could be rebuilt. */
  readonly wholeAfterMs: number | undefined
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
  /** Slots of which nothing came though later ones did. */
  readonly slotsMissing: number
  readonly recovered: number
  readonly missing: number
  readonly latencyMsP50: number | undefined
  readonly latencyMsP99: number | undefined
}

export type ListenOptions = {
  /** The pace of the chain, for latency. */
  readonly slotMs: number
  readonly leaders?: readonly LeaderRange[]
  readonly onBlock?: SlotAssemblerOptions['onBlock']
  /** Slots open at one time; a file may hold them in any order. */
  readonly slotsMax?: number
  readonly verifyTransactions?: boolean
}

/** About 160 MB of shreds. */
const SHREDS_MAX = 131_072
const SLOTS_OPEN_MAX = 64
/** Latencies kept for the percentiles; about seven hours of slots. */
const LATENCIES_MAX = 65_536

export function createListener(options: ListenOptions): Listener {
  const book = createSlotAssembler({
    slotsMax: options.slotsMax ?? SLOTS_OPEN_MAX,
    shredsMax: SHREDS_MAX,
    ...(options.leaders === undefined ? {} : { leaders: options.leaders }),
    ...(options.onBlock === undefined ? {} : { onBlock: options.onBlock }),
    ...(options.verifyTransactions === undefined ? {} : { verifyTransactions: options.verifyTransactions }),
  })
  const sums = { packets: 0, bytes: 0, duplicates: 0, late: 0, malformed: 0, challenges: 0 }
  const done = { slots: 0, slotsComplete: 0, recovered: 0, missing: 0 }
  const latencies: number[] = []
  let bestOffsetMs = Number.POSITIVE_INFINITY
  let [lowest, highest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]

  function lineOf(summary: SlotSummary): ListenLine {
    const offsetMs = summary.firstMs - summary.slot * options.slotMs
    bestOffsetMs = Math.min(bestOffsetMs, offsetMs)
    const latencyMs = offsetMs - bestOffsetMs
    if (latencies.length < LATENCIES_MAX) latencies.push(latencyMs)
    done.slots += 1
    done.slotsComplete += summary.isComplete ? 1 : 0
    done.recovered += summary.recovered
    done.missing += summary.missing
    lowest = Math.min(lowest, summary.slot)
    highest = Math.max(highest, summary.slot)
    return { ...summary, latencyMs, wholeAfterMs: summary.wholeMs && summary.wholeMs - summary.firstMs }
  }

  function totals(): ListenTotals {
    const sorted = latencies.toSorted((a, b) => a - b)
    const share = (part: number): number | undefined =>
      sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]
    return {
      ...sums,
      faults: Object.fromEntries(book.faults),
      ...done,
      slotsMissing: done.slots === 0 ? 0 : Math.max(0, highest - lowest + 1 - done.slots),
      latencyMsP50: share(0.5),
      latencyMsP99: share(0.99),
    }
  }

  return {
    take(packet, atMs) {
      if (readChallenge(packet) !== undefined) {
        sums.challenges += 1
        return packet
      }
      sums.packets += 1
      sums.bytes += packet.length
      const taken = book.take(packet, atMs)
      if (taken === 'duplicate') sums.duplicates += 1
      else if (taken === 'late') sums.late += 1
      else if (taken === 'malformed') sums.malformed += 1
      return undefined
    },
    lines: () => book.finish().map(lineOf),
    closedLines: () => book.takeFinished().map(lineOf),
    end() {
      const lines = book.finishAll().map(lineOf)
      return { lines, totals: totals() }
    },
    totals,
  }
}
