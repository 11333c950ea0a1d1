import { recordOf } from '../../core/records.ts'
import type { MetricsRegistry } from '../../platform/telemetry/metrics-registry.ts'
import { SHRED_OUTCOMES } from './events.ts'
import type { DecodedThreadReport, MergeReport } from './protocol.ts'

/** What became of slots: all data sets delivered, some lost, or no shred at all. */
const SLOT_RESULTS = ['complete', 'incomplete', 'missing'] as const
const FEC_SET_RESULTS = ['recovered', 'failed', 'conflicting'] as const
const DATA_SET_RESULTS = ['delivered', 'void', 'conflicting', 'undecodable'] as const

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
  const dataSets = registry.counter(
    'sluice_decoded_data_sets_total',
    'Complete data sets: delivered, void after a change of the parent, another version of one that was delivered, or impossible to decode.',
    { labels: { result: DATA_SET_RESULTS } },
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
  const merge = mergeMetrics(registry)
  const byShred = recordOf(SHRED_OUTCOMES, (outcome) => growth(shreds.with({ outcome })))
  const bySlot = recordOf(SLOT_RESULTS, (result) => growth(slots.with({ result })))
  const byFecSet = recordOf(FEC_SET_RESULTS, (result) => growth(fecSets.with({ result })))
  const byDataSet = recordOf(DATA_SET_RESULTS, (result) => growth(dataSets.with({ result })))
  const [grownTransactions, grownUnresolved, grownTooLarge, grownDropped] = [
    transactions,
    unresolved,
    tooLarge,
    inputDropped,
  ].map(growth)

  return {
    record({
      counts,
      openSlots: open,
      heldBytes: held,
      unresolved: without,
      dataSetsTooLarge,
      inputDropped: dropped,
      merge: merged,
    }) {
      for (const outcome of SHRED_OUTCOMES) byShred[outcome](counts.shreds[outcome])
      for (const result of SLOT_RESULTS) bySlot[result](counts.slots[result])
      byFecSet.recovered(counts.fecSetsRecovered)
      byFecSet.failed(counts.fecSetsRecoveryFailed)
      byFecSet.conflicting(counts.fecSetsConflicting)
      byDataSet.delivered(counts.dataSets)
      byDataSet.void(counts.dataSetsVoid)
      byDataSet.conflicting(counts.dataSetsConflicting)
      byDataSet.undecodable(counts.dataSetsUndecodable)
      grownTransactions?.(counts.transactions)
      grownUnresolved?.(without)
      grownTooLarge?.(dataSetsTooLarge)
      grownDropped?.(dropped)
      if (merged !== undefined) merge.record(merged)
      openSlots.set(open)
      heldBytes.set(held)
    },
  }
}

/** Where the streams of nodes are merged. */
function mergeMetrics(registry: MetricsRegistry): { record(report: MergeReport): void } {
  const first = registry.counter(
    'sluice_decoded_first_total',
    "Transactions delivered, by what had them first where nodes' own streams are merged.",
    { labels: { source: SOURCES } },
  )
  const lead = registry.histogram(
    'sluice_decoded_lead_seconds',
    'By how much the source that was first with a transaction was before the other; a sample.',
    { labels: { source: SOURCES }, buckets: LEAD_BUCKETS },
  )
  const upstream = registry.counter(
    'sluice_decoded_upstream_transactions_total',
    "Transactions of nodes' own streams: first, duplicate, late for their slot, refused because shreds.decoded.merge.bytesMax is reached, or lost because the engine did not keep up.",
    { labels: { outcome: UPSTREAM_OUTCOMES } },
  )
  const filled = growth(
    registry
      .counter(
        'sluice_decoded_data_sets_filled_total',
        'Data sets that the shreds did not give and the stream of a node has delivered.',
      )
      .with({}),
  )
  const byFirst = recordOf(SOURCES, (source) => growth(first.with({ source })))
  const bySource = recordOf(SOURCES, (source) => lead.with({ source }))
  const byOutcome = recordOf(UPSTREAM_OUTCOMES, (outcome) => growth(upstream.with({ outcome })))
  return {
    record({ counts, leads }) {
      byFirst.shreds(counts.first.own)
      byFirst.upstream(counts.first.upstream)
      for (const seconds of leads.own) bySource.shreds.observe(seconds)
      for (const seconds of leads.upstream) bySource.upstream.observe(seconds)
      for (const outcome of UPSTREAM_OUTCOMES) byOutcome[outcome](counts.upstream[outcome])
      filled(counts.dataSetsFilled)
    },
  }
}

const SOURCES = ['shreds', 'upstream'] as const
const UPSTREAM_OUTCOMES = ['first', 'duplicate', 'late', 'full', 'lost'] as const
const LEAD_BUCKETS = [0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]

/** Adds what a count has grown by. A smaller value is that of a new thread. */
function growth(series: { inc(by: number): void }): (count: number) => void {
  let seen = 0
  return (count) => {
    series.inc(count >= seen ? count - seen : count)
    seen = count
  }
}
