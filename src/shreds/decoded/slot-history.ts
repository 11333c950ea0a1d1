import type { Clock } from '../../core/clock.ts'
import type { SlotReport } from './events.ts'

/** What was decoded and what was lost, in the names of the wire. */
export type DecodedReport = {
  readonly slots_complete: number
  readonly slots_incomplete: number
  readonly transactions: number
  /** At least so many. */
  readonly data_sets_lost: number
  /** The newest first. */
  readonly slots: readonly DecodedSlotLine[]
}

export type DecodedSlotLine = {
  readonly slot: number
  readonly parent_slot: number | null
  readonly is_complete: boolean
  /** The leader signed two versions of a part of it. */
  readonly is_conflicting: boolean
  readonly transactions: number
  readonly data_sets: number
  readonly data_sets_lost: number
  /** Data sets that the shreds did not give and the stream of a node has delivered: at least so many. */
  readonly data_sets_from_upstream: number
  readonly fec_sets_recovered: number
  readonly fec_sets_not_recoverable: number
  readonly first_shred_at: string
  readonly last_shred_at: string
}

export type SlotHistory = { add(report: SlotReport): void; report(): DecodedReport }

/** Slots that the report lists: a minute and a half of a chain with slots of 400 ms. */
const SLOTS_MAX = 240

/** The slots that the engine has closed since the start. */
export function createSlotHistory(clock: Pick<Clock, 'nowMs' | 'monotonicMs'>): SlotHistory {
  const newest: DecodedSlotLine[] = []
  const totals = { slots_complete: 0, slots_incomplete: 0, transactions: 0, data_sets_lost: 0 }

  /** Shreds are stamped with the monotonic clock. */
  function dateOf(nanos: number): string {
    return new Date(clock.nowMs() - (clock.monotonicMs() - nanos / 1e6)).toISOString()
  }

  return {
    add(slot) {
      if (slot.isComplete) totals.slots_complete += 1
      else totals.slots_incomplete += 1
      totals.transactions += slot.transactions
      totals.data_sets_lost += slot.dataSetsLost
      newest.unshift({
        slot: slot.slot,
        parent_slot: slot.parentSlot ?? null,
        is_complete: slot.isComplete,
        is_conflicting: slot.isConflicting,
        transactions: slot.transactions,
        data_sets: slot.dataSets,
        data_sets_lost: slot.dataSetsLost,
        data_sets_from_upstream: slot.dataSetsFromUpstream ?? 0,
        fec_sets_recovered: slot.fecSetsRecovered,
        fec_sets_not_recoverable: slot.fecSetsNotRecoverable,
        first_shred_at: dateOf(slot.firstShredNanos),
        last_shred_at: dateOf(slot.lastShredNanos),
      })
      if (newest.length > SLOTS_MAX) newest.pop()
    },
    report: () => ({ ...totals, slots: [...newest] }),
  }
}
