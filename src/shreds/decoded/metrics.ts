import { recordOf } from '../../core/record-of.ts'
import type { MetricsRegistry } from '../../platform/telemetry/metrics-registry.ts'
import { SHRED_OUTCOMES } from './events.ts'
import type { DecodedThreadReport } from './protocol.ts'

/** What became of slots: all data sets delivered, some lost, or no shred at all. */
const SLOT_RESULTS = ['complete', 'incomplete', 'missing'] as const
const FEC_SET_RESULTS = ['recovered', 'failed', 'conflicting'] as const

export type DecodedMetrics = { record(report: DecodedThreadReport): void }

/** Metrics of the engine. Its counts begin at zero with each thread; the series continue. */
export function decodedMetrics(registry: MetricsRegistry): DecodedMetrics {
  const counter = (name: string, help: string) => registry.counter(name, help).with({})
  const shreds = registry.counter(
    'sluice_decoded_shreds_total',
    'Shreds that reached the engine, by what became of them.',
    {
      labels: { outcome: SHRED_OUTCOMES },
    },
  )
  const slots = registry.counter(
    'sluice_decoded_slots_total',
    'Closed slots: complete, incomplete because shreds were lost, or missing altogether.',
    { labels: { result: SLOT_RESULTS } },
  )
  const fecSets = registry.counter(
    'sluice_decoded_fec_sets_total',
    'FEC sets whose missing data shreds were recovered, whose recovery failed, and second versions of a set.',
    { labels: { result: FEC_SET_RESULTS } },
  )
  const transactions = counter('sluice_decoded_transactions_total', 'Transactions decoded.')
  const unresolved = counter(
    'sluice_decoded_unresolved_total',
    'Transactions delivered without loaded addresses because a lookup table was not known.',
  )
  const tooLarge = counter(
    'sluice_decoded_data_sets_too_large_total',
    'Data sets that were decoded and reported as lost because they are larger than decodedDataSetBytes.',
  )
  const inputDropped = counter(
    'sluice_decoded_input_dropped_total',
    'Shreds that were relayed and not decoded because the engine did not keep up.',
  )
  const openSlots = registry.gauge('sluice_decoded_open_slots', 'Slots that may still get shreds.', { merge: 'max' })
  const heldBytes = registry.gauge('sluice_decoded_held_bytes', 'Shreds held until their data set is complete.', {
    merge: 'max',
  })
  const byShred = recordOf(SHRED_OUTCOMES, (outcome) => growth(shreds.with({ outcome })))
  const bySlot = recordOf(SLOT_RESULTS, (result) => growth(slots.with({ result })))
  const byFecSet = recordOf(FEC_SET_RESULTS, (result) => growth(fecSets.with({ result })))
  const [grownTransactions, grownUnresolved, grownTooLarge, grownDropped] = [
    transactions,
    unresolved,
    tooLarge,
    inputDropped,
  ].map(growth)

  return {
    record({ counts, openSlots: open, heldBytes: held, unresolved: without, dataSetsTooLarge, inputDropped: dropped }) {
      for (const outcome of SHRED_OUTCOMES) byShred[outcome](counts.shreds[outcome])
      for (const result of SLOT_RESULTS) bySlot[result](counts.slots[result])
      byFecSet.recovered(counts.fecSetsRecovered)
      byFecSet.failed(counts.fecSetsRecoveryFailed)
      byFecSet.conflicting(counts.fecSetsConflicting)
      grownTransactions?.(counts.transactions)
      grownUnresolved?.(without)
      grownTooLarge?.(dataSetsTooLarge)
      grownDropped?.(dropped)
      openSlots.set(open)
      heldBytes.set(held)
    },
  }
}

/** Adds what a count has grown by. A smaller value is that of a new thread. */
function growth(series: { inc(by: number): void }): (count: number) => void {
  let seen = 0
  return (count) => {
    series.inc(count >= seen ? count - seen : count)
    seen = count
  }
}
